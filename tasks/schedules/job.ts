import type { JobSpec } from '../../sql/jobs/jobs.ts'
import { buildJobSpecs, type EnqueueOptions, type TaskDefinition } from '../task.ts'
import { type DeclaredTasks, requireTask } from '../worker-queues/declared.ts'
import { scheduleEntries } from './entries.ts'

/** The part of a schedule that determines its job. */
export interface ScheduledTask {
  readonly id: string
  readonly is_built_in: boolean
  readonly owner_id: number | null
  readonly task_name: string
  readonly queue_type: string
  readonly args: Readonly<Record<string, unknown>>
}

/**
 * Builds the job of a schedule, for its owner.
 *
 * @param declared tasks of worker queues that the owner may use.
 * @throws fail('task.unknown'), fail('task.unknown_queue') or fail('worker_queue.undeclared') if there is no such task.
 * @throws ZodError if the task does not accept the arguments.
 */
export function buildScheduledJob(
  schedule: ScheduledTask,
  declared: DeclaredTasks,
  options: Omit<EnqueueOptions, 'ownerId'>,
): JobSpec {
  const task = findScheduledTask(schedule, declared)
  return buildJobSpecs(task, [schedule.args], { ...options, ownerId: schedule.owner_id })[0]!
}

function findScheduledTask(
  { id, is_built_in, task_name, queue_type }: ScheduledTask,
  declared: DeclaredTasks,
): TaskDefinition<unknown, unknown> {
  const entry = is_built_in ? findEntry(id) : undefined
  return entry === undefined
    ? requireTask(task_name, queue_type, declared)
    : (entry.task as unknown as TaskDefinition<unknown, unknown>)
}

export const findEntry = (id: string) => scheduleEntries.find(({ identifier }) => identifier === id)
