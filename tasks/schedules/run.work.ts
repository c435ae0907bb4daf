import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import { enqueueJobs, type JobSpec } from '../../sql/jobs/jobs.ts'
import {
  advanceSchedule,
  type LockedSchedule,
  lockSchedule,
  type SkipReason,
  type TimeOutcome,
} from '../../sql/schedules/schedules.ts'
import { listDeclaredTasks } from '../../sql/worker-queues/tasks.ts'
import type { TaskContext } from '../context.ts'
import { isNamedQueue } from '../load-test/on-queues.ts'
import { type DeclaredTasks, indexDeclared } from '../worker-queues/declared.ts'
import { getSchemaChecker } from '../worker-queues/schema-checker.ts'
import { buildScheduledJob, findEntry } from './job.ts'
import { buildMessage, type Message } from './message.ts'
import { findLatestTime, findNextTime, type Timing } from './timing.ts'

interface Result {
  readonly job_id: string | null
  readonly skipped: string | null
}

// A time later than this is missed, unless the schedule catches up. It exceeds restarts, and the time that workers take
// for 100,000 schedules of the same minute.
const MAX_LATE_MS = 300_000

/** Runs `schedules.run`. */
export async function run(
  ctx: Pick<TaskContext, 'runFenced' | 'settings'>,
  message: Message,
): Promise<Result> {
  const runWith = (skip: SkipReason | null): Promise<Result> =>
    ctx.runFenced((tx) => runTime(tx, ctx.settings, message, skip))
  try {
    return await runWith(null)
  } catch (error) {
    // The refusal has rolled back the transaction. The next one skips this time.
    if (error instanceof Failure && error.code === 'quota.waiting_jobs') return runWith('quota')
    throw error
  }
}

/** Adds the job of the time and the message for the next one, unless the message is stale. */
async function runTime(
  tx: Queries,
  settings: TaskContext['settings'],
  { schedule_id: id, at: due }: Message,
  skip: SkipReason | null,
): Promise<Result> {
  const schedule = await tx.maybeOne(lockSchedule(id, null))
  if (schedule === null || schedule.next_at !== due) return { job_id: null, skipped: 'stale' }
  // A rolling deployment may have changed the declaration of a built-in schedule.
  const cron = schedule.is_built_in ? (findEntry(id)?.match ?? schedule.cron) : schedule.cron
  const timing: Timing = { ...schedule, cron }
  const now = Date.parse(schedule.now)
  const time = findLatestTime(timing, Date.parse(due), now)
  const next = findNextTime(timing, Math.max(time, now))
  const nextAt = next === null ? null : new Date(next).toISOString()
  const job = skip ?? (await buildJob(tx, schedule, now - time > MAX_LATE_MS, settings))
  const message = nextAt === null ? [] : [buildMessage({ id, next_at: nextAt }, settings)]
  // One statement, because the locks of mailboxes have an order.
  const specs = typeof job === 'string' ? message : [job, ...message]
  const added = specs.length === 0 ? [] : await tx.any(enqueueJobs(specs, settings.quotas.waiting_jobs))
  const outcome: TimeOutcome =
    typeof job === 'string' ? { skip: job, at: new Date(time).toISOString() } : { jobId: added[0]!.job_id }
  await tx.run(advanceSchedule(id, nextAt, cron, outcome))
  return 'jobId' in outcome
    ? { job_id: outcome.jobId, skipped: null }
    : { job_id: null, skipped: outcome.skip }
}

/** Returns the job of a time, or the reason for which the time is skipped. */
async function buildJob(
  tx: Queries,
  schedule: LockedSchedule,
  isLate: boolean,
  settings: TaskContext['settings'],
): Promise<JobSpec | SkipReason> {
  if (!schedule.has_active_owner) return 'account'
  if (isLate && schedule.catch_up === 'none') return 'late'
  if (schedule.is_busy && schedule.overlap === 'skip') return 'overlap'
  try {
    const declared = await findDeclared(tx, schedule)
    return declared === null ? 'task' : buildScheduledJob(schedule, declared, { settings })
  } catch (error) {
    const isUnknown = error instanceof Failure && UNKNOWN_CODES.has(error.code)
    if (isUnknown || error instanceof z.ZodError) return 'task'
    throw error
  }
}

const UNKNOWN_CODES: ReadonlySet<string> = new Set([
  'task.unknown',
  'task.unknown_queue',
  'worker_queue.undeclared',
])

/** Returns the schedule's task if it is one of a worker queue; null if that does not accept the arguments. */
async function findDeclared(tx: Queries, schedule: LockedSchedule): Promise<DeclaredTasks | null> {
  const { owner_id, queue_type, task_name, args } = schedule
  if (schedule.is_built_in || isNamedQueue(queue_type)) return new Map()
  const found = await tx.any(listDeclaredTasks([{ queue: queue_type, task: task_name, owner: owner_id }]))
  const schema = found[0]?.args ?? null
  const declared = indexDeclared(found)
  if (schema === null) return declared
  const [problem] = await getSchemaChecker().check(owner_id ?? 0, schema, [JSON.stringify(args)])
  return problem === null ? declared : null
}
