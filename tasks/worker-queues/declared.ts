import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import type { DeclaredTask } from '../../sql/worker-queues/tasks.ts'
import { requireNamedTask } from '../load-test/index.ts'
import type { TaskDefinition } from '../task.ts'
import { formatJobName } from './names.ts'

/** Tasks of worker queues, as definitions with which jobs are added. Their workers run elsewhere. */

/** Tasks of worker queues by the names of their jobs. */
export type DeclaredTasks = ReadonlyMap<string, DeclaredTask>

export const indexDeclared = (tasks: readonly DeclaredTask[]): DeclaredTasks =>
  new Map(tasks.map((task) => [formatJobName(task.queue, task.name), task]))

const Args = z.record(z.string(), z.unknown())

/**
 * Returns the definition of a declared task. All jobs of a task with a limit share a mailbox, except those with a key.
 */
export function defineDeclared(
  { queue, name, limit, max_tries }: DeclaredTask,
  hasKey: boolean,
): TaskDefinition<unknown, unknown> {
  const jobName = formatJobName(queue, name)
  return {
    name: jobName,
    queue,
    pool: 'io',
    payload: Args as z.ZodType<unknown>,
    result: z.unknown(),
    ...(limit === null ? {} : { limit }),
    ...(limit === null || hasKey ? {} : { actor: () => jobName }),
    ...(max_tries === null ? {} : { tries: max_tries }),
    run: () => Promise.reject(new Error('The task runs on workers of its queue')),
  }
}

/**
 * Finds a task that callers may enqueue: a built-in one of a named queue, or one of the declared tasks.
 *
 * @throws fail('task.unknown_queue') also for a queue that the caller may not use, fail('task.unknown').
 * @throws fail('worker_queue.undeclared')
 */
export function requireTask(
  name: string,
  queue: string,
  declared: DeclaredTasks,
  hasKey = false,
): TaskDefinition<unknown, unknown> {
  const task = declared.get(formatJobName(queue, name))
  if (task === undefined) return requireNamedTask(name, queue)
  if (!task.is_declared && !task.is_open) throw fail('worker_queue.undeclared', { queue, name })
  return defineDeclared(task, hasKey)
}
