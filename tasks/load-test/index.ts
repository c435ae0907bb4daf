import { fail } from '../../sql/errors.ts'
import { noop } from '../system/noop.task.ts'
import { pruneExpired } from '../system/prune.task.ts'
import type { AnyTask, TaskDefinition } from '../task.ts'
import { cpuIntensive } from './cpu-intensive.task.ts'
import { failureTesting } from './failure-testing.task.ts'
import { ioSimulation } from './io-simulation.task.ts'
import { memoryOperations } from './memory-operations.task.ts'
import { NAMED_QUEUES, type NamedQueue, publicNameOf } from './on-queues.ts'
import { orchestrator } from './orchestrator.task.ts'

/** The built-in tasks of the named queues. */
export const loadTestTasks: readonly AnyTask[] = [
  ...ioSimulation,
  ...cpuIntensive,
  ...memoryOperations,
  ...failureTesting,
  ...orchestrator,
] as unknown as readonly AnyTask[]

const callableTasks = [...loadTestTasks, pruneExpired as unknown as AnyTask, noop as unknown as AnyTask]

/** Tasks that callers may enqueue, by queue and name. */
export const namedTasks: ReadonlyMap<NamedQueue, ReadonlyMap<string, AnyTask>> = new Map(
  NAMED_QUEUES.map((queue) => [
    queue,
    new Map(callableTasks.filter((task) => task.queue === queue).map((task) => [publicNameOf(task), task])),
  ]),
)

/**
 * Finds a task that callers may enqueue.
 * @throws fail('task.unknown_queue') or fail('task.unknown'), whose text lists the existing names.
 */
export function requireNamedTask(name: string, queue: string): TaskDefinition<unknown, unknown> {
  const byName = (namedTasks as ReadonlyMap<string, ReadonlyMap<string, AnyTask>>).get(queue)
  if (byName === undefined) throw fail('task.unknown_queue', { name: queue, names: NAMED_QUEUES.join(', ') })
  const task = byName.get(name)
  if (task === undefined) throw fail('task.unknown', { name, names: [...byName.keys()].sort().join(', ') })
  return task as unknown as TaskDefinition<unknown, unknown>
}

/** Finds the task of a job by its name; null if callers cannot enqueue it. */
export function findNamedTask(name: string, queue: string): TaskDefinition<unknown, unknown> | null {
  const byName = (namedTasks as ReadonlyMap<string, ReadonlyMap<string, AnyTask>>).get(queue)
  const task = byName?.get(publicNameOf({ name, queue }))
  return (task as TaskDefinition<unknown, unknown> | undefined) ?? null
}
