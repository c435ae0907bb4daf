import { findMissingOrDuplicate } from '../area.ts'
import { END_STATUSES } from '../follow.ts'
import type { World } from '../world.ts'
import { QUEUE, type StepArgs } from './messages.ts'

/** Everything that callers and HTTP workers know about the jobs of the queue. */
export interface Known {
  /** Arguments of each acknowledged job. */
  readonly jobs: ReadonlyMap<string, StepArgs>
  /** Jobs whose end calls back. */
  readonly called: ReadonlySet<string>
  /** Attempts by job whose end the service has accepted, or refused. */
  readonly ended: ReadonlyMap<string, ReadonlySet<number>>
  readonly refused: ReadonlyMap<string, ReadonlySet<number>>
}

interface JobRow {
  readonly id: string
  readonly status: string
  readonly attempt: number
  readonly seq: number
  readonly result: { readonly word: string; readonly attempt: number } | null
  readonly calls: number
}

interface EventRow {
  readonly seq: number
  readonly kind: string
  readonly data: {
    readonly status?: string
    readonly label?: string
    readonly attempt: number
    readonly step: number
  }
}

/** Returns a sentence for each violation of a job of the queue. */
export async function judgeWorkerJobs({ query }: World, known: Known): Promise<string[]> {
  const rows = (await query(
    `select id, status, attempt, seq, result, (select count(*)::int from webhook_delivery d
       where d.type like 'job.%' and d.body::jsonb -> 'data' ->> 'job_id' = job.id::text) as calls
     from job where queue = $1`,
    [QUEUE],
  )) as unknown as JobRow[]
  const events = await query(
    `select e.job_id, e.seq, e.kind, e.data from job_event e join job on job.id = e.job_id
     where job.queue = $1 order by e.job_id, e.seq`,
    [QUEUE],
  )
  const byJob = Map.groupBy(events, ({ job_id }) => String(job_id))
  const ids = [...known.jobs.keys()]
  const found = findMissingOrDuplicate(
    'job of a worker queue',
    ids,
    rows.map(({ id }) => id),
  )
  if (rows.length !== ids.length)
    found.push(`${rows.length} jobs of the worker queue exist, but ${ids.length} were acknowledged`)
  for (const row of rows) {
    const own = (byJob.get(row.id) ?? []) as unknown as EventRow[]
    const wrong = [...judgeEnd(row, known), ...judgeEvents(row, own, known.jobs.get(row.id)?.steps ?? 0)]
    found.push(...wrong.map((text) => `${text} (job ${row.id})`))
  }
  const [counts] = await query(
    `select sum(queued)::int as queued, sum(running)::int as running, sum(waiting)::int as waiting
     from job_count where queue = $1`,
    [QUEUE],
  )
  if (Object.values(counts!).some((n) => n !== 0))
    found.push(`the counts of the worker queue are ${JSON.stringify(counts)}`)
  return found
}

function judgeEnd(row: JobRow, { jobs, called, ended, refused }: Known): string[] {
  const { id, attempt, result } = row
  const found: string[] = []
  if (row.status === 'done' && (result?.word !== jobs.get(id)?.word || result?.attempt !== attempt))
    found.push(`attempt ${attempt} ended with ${JSON.stringify(result)}`)
  const accepted = [...(ended.get(id) ?? [])].filter((one) => one !== attempt || row.status !== 'done')
  if (accepted.length > 0)
    found.push(`ends of attempts ${accepted} were accepted, but attempt ${attempt} is ${row.status}`)
  if (row.status === 'done' && refused.get(id)?.has(attempt))
    found.push(`the end of attempt ${attempt} was refused, but it is done`)
  if (called.has(id) && row.calls !== 1) found.push(`its end called back ${row.calls} times`)
  return found
}

/** Checks that no event is missing or late, and that the end is the last one. */
function judgeEvents({ seq, attempt }: JobRow, events: readonly EventRow[], steps: number): string[] {
  const found: string[] = []
  const isWhole = events.length === seq && events.every((event, i) => event.seq === i + 1)
  if (!isWhole) found.push(`its events are ${events.map((event) => event.seq)}, but its last is ${seq}`)
  const ends = events.filter(
    ({ kind, data }) => kind === 'status' && END_STATUSES.includes(data.status ?? ''),
  )
  if (ends.length !== 1 || ends[0] !== events.at(-1)) found.push(`it has ${ends.length} terminal events`)
  if (events.some(({ data }) => data.label === 'late')) found.push('it has a late event')
  const reported = events.filter(({ kind }) => kind === 'step').map(({ data }) => data)
  const words = reported.map((step) => `${step.attempt}.${step.step}`)
  const isOrdered = reported.every((step, i) => {
    const before = reported[i - 1]
    if (before?.attempt === step.attempt) return step.step === before.step + 1
    return step.step === 1 && step.attempt > (before?.attempt ?? 0)
  })
  const last = reported.filter((step) => step.attempt === attempt).length
  if (!isOrdered || last !== steps) found.push(`attempt ${attempt} of ${steps} steps has the events ${words}`)
  return found
}
