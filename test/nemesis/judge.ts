import { assertGapless } from '../flow/crash.ts'
import type { CallHistory } from './caller.ts'
import type { World } from './world.ts'

/**
 * Checks invariants that hold in every area, and returns the violations. `deaths` is the number of killed or
 * separated processes that ran jobs.
 */
export async function judge(world: World, history: CallHistory, deaths: number): Promise<string[]> {
  return [
    ...world.members.flatMap(({ unexpectedExits }) => unexpectedExits),
    ...world.members.flatMap(({ name, log }) => log.filter(isUncaught).map((line) => `${name}: ${line}`)),
    ...(await judgeJobs(world, deaths)),
    ...(await judgeSchedules(world)),
    ...(await judgeStreams(world, history)),
  ]
}

const isUncaught = (line: string): boolean => /"level":60|UnhandledPromise/.test(line)

async function judgeJobs({ query }: World, deaths: number): Promise<string[]> {
  const notDone = await query(
    `select id, name, status, attempt, tries, max_tries, interruptions, error_code, error_detail from job
     where status <> 'done' and (status in ('failed', 'cancelled') or run_at < now() and queue <> 'schedules')`,
  )
  const crashed = notDone.filter(({ error_code }) => error_code === 'job.crashed')
  // A job fails once its process has died in each try, so one crashed job explains `max_tries` of the deaths.
  const explained = crashed.reduce((sum, { max_tries }) => sum + Number(max_tries), 0)
  const bad = explained <= deaths ? notDone.filter((job) => !crashed.includes(job)) : notDone
  const deliveries = await query(
    `select count(*)::int as n from graphile_worker._private_jobs where locked_at < now() - interval '1 minute'`,
  )
  return [
    ...bad.map((job) => `not done: ${JSON.stringify(job)}`),
    ...(deliveries[0]!.n === 0 ? [] : [`${deliveries[0]!.n} deliveries are locked by a worker that is gone`]),
  ]
}

/** Each time of a schedule has one job at most, and each schedule goes on. */
async function judgeSchedules({ query }: World): Promise<string[]> {
  const doubled = await query(
    `select payload, count(*)::int as n from job where name = 'schedules.run' and result ->> 'job_id' is not null
     group by payload having count(*) > 1`,
  )
  const stopped = await query(
    `select id, next_at from schedule where paused_at is null and (next_at is null or next_at < now() - interval '1 min')`,
  )
  return [
    ...doubled.map((time) => `a schedule added several jobs: ${JSON.stringify(time)}`),
    ...stopped.map((schedule) => `a schedule stopped: ${JSON.stringify(schedule)}`),
  ]
}

async function judgeStreams({ query }: World, { followed }: CallHistory): Promise<string[]> {
  const found: string[] = []
  for (const { jobId, frames } of followed) {
    try {
      await assertGapless(query, jobId, frames)
    } catch (error) {
      found.push(`the stream of job ${jobId}: ${(error as Error).message}`)
    }
  }
  return found
}
