import { type FinishEntry, type ProgressEntry, serializeEntry } from '../../../sql/jobs/jobs.ts'
import type { LogLine } from '../../../sql/jobs/log.ts'
import type { Attempt, HeldLease } from '../../../sql/worker-queues/claims.ts'
import { buildFailureEntry } from '../../../tasks/worker-queues/failures.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { findItemFlaw, type ReportItem } from './report-shapes.ts'

/** Sorts the items of a report into the entries of the ledger. */

export interface PreparedReport {
  readonly progress: readonly ReportedProgress[]
  readonly logs: readonly LogLine[]
  readonly ends: readonly PreparedEnd[]
  /** Items that are not stored, and the reasons. */
  readonly invalid: ReadonlyMap<ReportItem, string>
  /** True if the item's attempt runs under the lease. */
  isCurrent(item: ReportItem): boolean
}

type ReportedProgress = Omit<ProgressEntry, 'n'> & Partial<Pick<ProgressEntry, 'n'>>

interface PreparedEnd extends Pick<FinishEntry, 'id' | 'outcome'> {
  /** JSON text of the entry. */
  readonly text: string
}

export async function prepareReport(
  edge: Edge,
  caller: Caller,
  held: HeldLease,
  items: readonly ReportItem[],
): Promise<PreparedReport> {
  const jobs = new Map(held.jobs.filter((job) => job.is_current).map((job) => [job.id, job]))
  const isCurrent = ({ job_id, attempt }: ReportItem) => jobs.get(job_id)?.attempt === attempt
  const results = new Map<ReportItem, string>()
  const invalid = new Map<ReportItem, string>()
  for (const item of items) {
    if (item.done !== undefined) results.set(item, JSON.stringify(item.done.result))
    const flaw = findItemFlaw(item, results.get(item))
    if (flaw !== null) invalid.set(item, flaw)
  }
  const current = items.filter((item) => isCurrent(item) && !invalid.has(item))
  await checkResults(edge, caller, held, { items: current, jobs, results, invalid })
  const valid = current.filter((item) => !invalid.has(item))
  return {
    progress: buildProgress(valid),
    logs: valid.flatMap((item) => buildLogLine(item, edge)),
    ends: buildEnds(valid, jobs, results),
    invalid,
    isCurrent,
  }
}

interface CheckedItems {
  readonly items: readonly ReportItem[]
  readonly jobs: ReadonlyMap<string, Attempt>
  readonly results: ReadonlyMap<ReportItem, string>
  readonly invalid: Map<ReportItem, string>
}

/** Checks the results of each task against its schema, and adds the items that do not match to `invalid`. */
async function checkResults(
  { schemas }: Edge,
  caller: Caller,
  { tasks }: HeldLease,
  { items, jobs, results, invalid }: CheckedItems,
): Promise<void> {
  const checked = items.filter((item) => results.has(item) && schemaOf(item) !== null)
  function schemaOf({ job_id }: ReportItem): unknown {
    return tasks[jobs.get(job_id)!.name]?.result ?? null
  }
  for (const group of Map.groupBy(checked, ({ job_id }) => jobs.get(job_id)!.name).values()) {
    const texts = group.map((item) => results.get(item)!)
    const problems = await schemas.check(caller.ownerId ?? 0, schemaOf(group[0]!), texts)
    for (const [index, problem] of problems.entries())
      if (problem !== null)
        invalid.set(
          group[index]!,
          `The result ${problem.path.join('.')} ${problem.message}`.replace('  ', ' '),
        )
  }
}

/** The database numbers items that have no number. */
function buildProgress(items: readonly ReportItem[]): ReportedProgress[] {
  return items.flatMap(({ job_id: id, attempt, n, progress, event }) => {
    const entry = n === undefined ? { id, attempt } : { id, attempt, n }
    if (event !== undefined) return [{ ...entry, kind: event.kind, data: event.data }]
    if (progress === undefined) return []
    const { label, current = null, total = null } = progress
    return [{ ...entry, kind: 'status', data: { status: 'running', label, current, total } }]
  })
}

function buildLogLine({ job_id, attempt, n, log }: ReportItem, { healthCheck }: Edge): LogLine[] {
  if (log === undefined) return []
  return [
    {
      job_id,
      attempt,
      at: new Date(healthCheck.now()).toISOString(),
      ...log,
      is_reported: true,
      ...(n === undefined ? {} : { n }),
    },
  ]
}

/** The first of several ends of a job counts. */
function buildEnds(
  items: readonly ReportItem[],
  jobs: ReadonlyMap<string, Attempt>,
  results: ReadonlyMap<ReportItem, string>,
): PreparedEnd[] {
  const ends = new Map<string, PreparedEnd>()
  for (const item of items) {
    const entry = buildEnd(item, jobs.get(item.job_id)!)
    if (entry === null || ends.has(entry.id)) continue
    const result = results.get(item)
    ends.set(entry.id, {
      ...entry,
      text: serializeEntry(result === undefined ? entry : { ...entry, result }),
    })
  }
  return [...ends.values()]
}

function buildEnd({ done, failed, release }: ReportItem, job: Attempt): FinishEntry | null {
  const { id, attempt } = job
  if (done !== undefined) return { id, attempt, outcome: 'done' }
  if (failed !== undefined) return buildFailureEntry(job, failed)
  if (release === undefined) return null
  return { id, attempt, outcome: 'release', delay_ms: Math.round(release.delay_seconds * 1000) }
}
