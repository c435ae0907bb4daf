import { setTimeout as delay } from 'node:timers/promises'
import { getAwakeMs } from '../awake.ts'
import { assertComplete } from '../flow/crash.ts'
import type { Frame } from '../service.ts'
import type { Caller } from './caller.ts'

const POLL_INTERVAL_MS = 25
const DROP_PROBABILITY = 0.01
// MAX_REPORT_MS limits the delay until an edge reports the end of a job. MAX_JOB_MS limits the job, which may restart many
// times.
const MAX_REPORT_MS = 60_000
const MAX_JOB_MS = 900_000
const CHECK_INTERVAL_MS = 30_000
export const END_STATUSES = ['done', 'failed', 'cancelled']

/**
 * Reads a job's stream to its end at random edges, and returns the last frame's data. Sometimes drops and resumes the
 * stream.
 *
 * @throws if the stream has no end or several ends, or the job is not done.
 */
export async function follow(caller: Caller, jobId: string): Promise<Frame['data']> {
  const frames: Frame[] = []
  const from = getAwakeMs()
  let next = from + CHECK_INTERVAL_MS
  const isOver = (): boolean => END_STATUSES.includes(frames.at(-1)?.data.status ?? '')
  while (!isOver()) {
    if (getAwakeMs() > next) {
      next = getAwakeMs() + CHECK_INTERVAL_MS
      const job = await readJob(caller, jobId)
      if (Number(job?.over) * 1000 > MAX_REPORT_MS || next - from > MAX_JOB_MS)
        throw caller.recordViolation(
          `a stream did not end; last frame ${frames.at(-1)?.id}, job ${JSON.stringify(job)} (job ${jobId})`,
        )
    }
    const stream = await caller.open(`/api/v1/jobs/${jobId}/events`, frames.at(-1)?.id ?? '')
    while (stream !== null && !stream.ended) {
      await delay(POLL_INTERVAL_MS)
      if (caller.chance.isHit(DROP_PROBABILITY)) break
    }
    stream?.close()
    frames.push(...(stream?.frames ?? []))
    await delay(POLL_INTERVAL_MS)
  }
  const last = frames.at(-1)!.data
  try {
    assertComplete(frames)
  } catch (error) {
    throw caller.recordViolation(
      `the stream of job ${jobId}: ${(error as Error).message}, ${frames.map(({ id }) => id)}`,
    )
  }
  if (last.status !== 'done')
    throw caller.recordViolation(`job ${jobId} ended as ${last.status}: ${JSON.stringify(last.error)}`)
  caller.history.followed.push({ jobId, frames })
  return last
}

/** Returns the stored job with the seconds since it finished; undefined while the database is unavailable. */
async function readJob({ world }: Caller, jobId: string): Promise<Record<string, unknown> | undefined> {
  const [job] = await world
    .query(
      `select status, attempt, tries, interruptions, seq, run_at, started_at, extract(epoch from now() - finished_at)::float8 as over
       from job where id = $1`,
      [jobId],
    )
    .catch(() => [])
  return job
}
