import { assertGapless } from '../flow/crash.ts'
import type { History } from './caller.ts'
import type { World } from './world.ts'

/** What must hold of everything, whichever area it is of. */
export async function judge(world: World, history: History): Promise<string[]> {
  return [
    ...world.members.flatMap(({ strayEnds }) => strayEnds),
    ...world.members.flatMap(({ name, log }) => log.filter(isUncaught).map((line) => `${name}: ${line}`)),
    ...(await judgeJobs(world)),
    ...(await judgeStreams(world, history)),
  ]
}

const isUncaught = (line: string): boolean => /"level":60|nobody caught|UnhandledPromise/.test(line)

async function judgeJobs({ query }: World): Promise<string[]> {
  const bad = await query(
    `select id, name, status, attempt, interruptions, error_code, error_detail from job
     where status <> 'done' and (status in ('failed', 'cancelled') or run_at < now())`,
  )
  const deliveries = await query(
    `select count(*)::int as n from graphile_worker._private_jobs where locked_at < now() - interval '1 minute'`,
  )
  return [
    ...bad.map((job) => `not done: ${JSON.stringify(job)}`),
    ...(deliveries[0]!.n === 0 ? [] : [`${deliveries[0]!.n} deliveries are locked for nobody`]),
  ]
}

async function judgeStreams({ query }: World, { followed }: History): Promise<string[]> {
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
