import { z } from 'zod'
import { storeLogLines } from '../../../sql/jobs/log.ts'
import {
  type Report as JobReport,
  notifyReported,
  type Reported,
  sendReport,
  storeReport,
} from '../../../sql/jobs/reports.ts'
import { type Attempt, type HeldLease, renewWorkerLease } from '../../../sql/worker-queues/claims.ts'
import type { Edge } from '../../pipeline/context.ts'
import { route } from '../../pipeline/route.ts'
import { viewerOf } from './access.ts'
import { countEnded } from './ended.ts'
import { leaseOptions, requireHeld } from './held-lease.ts'
import { type PreparedReport, prepareReport } from './report-items.ts'
import { Item, type ReportItem } from './report-shapes.ts'

/** The route with which HTTP workers report about their jobs. */

const MAX_ITEMS = 1000

const Report = z.strictObject({ items: z.array(Item).min(1).max(MAX_ITEMS) }).meta({ id: 'WorkerReport' })

const ReportAnswer = z
  .strictObject({
    items: z
      .array(
        z.strictObject({
          job_id: z.uuid(),
          status: z.enum(['ok', 'superseded', 'invalid']),
          reason: z.string().optional().describe('Only of invalid items'),
        }),
      )
      .describe('In the order of the request'),
  })
  .meta({ id: 'WorkerReportAnswer' })

export const reportRoute = route({
  ...leaseOptions,
  method: 'post',
  path: '/:lease_id/reports',
  summary: 'Report progress, events, log lines and ends of jobs',
  description: `All items are stored in one transaction. An item is \`superseded\` if the attempt does not run under the lease any more: \
stop it. An item is \`invalid\` if it is too large, or if its result does not match the schema of the task; the attempt goes on. A \
repeated end of the same attempt is \`ok\`. A report also renews the lease.`,
  body: Report,
  bodyBytes: 16 * 2 ** 20,
  bodyValues: 1_000_000,
  response: ReportAnswer,
  whyRepeatable: 'Ends are stored once, and numbered items too',
  handle: async ({ params, body, caller, edge }) => {
    const ids = [...new Map(body.items.map((item) => [keyOf(item), item])).values()]
    const wanted = {
      ids: ids.map(({ job_id }) => job_id),
      attempts: ids.map(({ attempt }) => attempt),
    }
    const lookUp = () =>
      requireHeld(edge, params.lease_id, (id) => renewWorkerLease(id, viewerOf(caller), wanted))
    const held = await lookUp()
    const report = await prepareReport(edge, caller, held, body.items)
    const { progressed, ended } = await store(edge, report)
    countEnded(edge, held, report.ends, ended)
    edge.claims.handleEnds(held.queue, ended.size)
    const refused = report.ends.filter(({ id }) => !ended.has(id))
    // A request with the same ends may have been faster.
    const after = refused.length === 0 ? held : await lookUp()
    const answers = body.items.map(createAnswerer({ report, progressed, ended, after }))
    const accepted = new Set(
      body.items.filter((item, index) => isEnd(item) && answers[index]!.status === 'ok').map(keyOf),
    )
    return {
      items: body.items.map((item, index) => {
        const answer = answers[index]!
        // The whole report is a repetition, in which the end of the attempt counts.
        const isOver = answer.status === 'superseded' && !isEnd(item) && accepted.has(keyOf(item))
        return isOver ? { ...answer, status: 'ok' as const } : answer
      }),
    }
  },
})

async function store(
  { db, publisher }: Edge,
  { progress, logs, ends }: PreparedReport,
): Promise<{ readonly progressed: ReadonlySet<string>; readonly ended: ReadonlySet<string> }> {
  if (progress.length + logs.length + ends.length === 0) return { progressed: new Set(), ended: new Set() }
  const report = { progress, ends: `[${ends.map(({ text }) => text).join()}]` }
  const stored =
    logs.length === 0
      ? await sendReport(db, publisher, report)
      : await storeWithLogs({ db, publisher }, report, logs)
  return { progressed: new Set(stored.progressed), ended: new Set(stored.ended) }
}

/** Stores a report and log lines in one transaction. */
async function storeWithLogs(
  { db, publisher }: Pick<Edge, 'db' | 'publisher'>,
  report: JobReport,
  logs: PreparedReport['logs'],
): Promise<Reported> {
  const stored = await db.transaction(async (tx) => {
    const reported = await tx.one(storeReport(report, false))
    await tx.run(storeLogLines(logs))
    return reported
  })
  notifyReported(publisher, report, stored)
  return stored
}

interface StoredReport {
  readonly report: PreparedReport
  readonly progressed: ReadonlySet<string>
  readonly ended: ReadonlySet<string>
  readonly after: HeldLease
}

const keyOf = ({ job_id, attempt }: Pick<ReportItem, 'job_id' | 'attempt'>): string => `${job_id} ${attempt}`

function createAnswerer({ report, progressed, ended, after }: StoredReport) {
  const found = Map.groupBy(after.jobs, ({ id }) => id)
  return (item: ReportItem) => {
    const { job_id } = item
    const reason = report.invalid.get(item)
    if (reason !== undefined) return { job_id, status: 'invalid' as const, reason }
    const isStored =
      report.isCurrent(item) && (isEnd(item) ? ended.has(job_id) : isStoredProgress(item, progressed, ended))
    const isRepeated =
      isEnd(item) &&
      (found.get(job_id) ?? []).some((job) => job.given === item.attempt && hasEndedSo(job, item))
    return { job_id, status: isStored || isRepeated ? ('ok' as const) : ('superseded' as const) }
  }
}

const isEnd = ({ done, failed, release }: ReportItem): boolean =>
  done !== undefined || failed !== undefined || release !== undefined

const isStoredProgress = (
  { job_id, log }: ReportItem,
  progressed: ReadonlySet<string>,
  ended: ReadonlySet<string>,
): boolean => log !== undefined || progressed.has(job_id) || ended.has(job_id)

/** True if the attempt that the item is about has ended as the item says. */
function hasEndedSo({ ended }: Attempt, { done, failed, release }: ReportItem): boolean {
  if (done !== undefined) return ended === 'done'
  if (failed !== undefined) return ended === 'failed' || ended === 'retry' || ended === 'cancelled'
  return release !== undefined && (ended === 'release' || ended === 'cancelled')
}
