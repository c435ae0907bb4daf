import type { AnyTask, TaskDefinition } from '../task.ts'
import { defineTask } from '../task.ts'

/** Queues that callers of `/tasks` may name. */
export const NAMED_QUEUES = ['load_test', 'system'] as const
export type NamedQueue = (typeof NAMED_QUEUES)[number]

export const isNamedQueue = (queue: string): queue is NamedQueue =>
  (NAMED_QUEUES as readonly string[]).includes(queue)

/** Defines a task on each named queue. A queue's runner knows only its own tasks, so each copy needs its own name. */
export function defineOnNamedQueues<P, R>(
  definition: Omit<TaskDefinition<P, R>, 'queue'>,
): readonly TaskDefinition<P, R>[] {
  return NAMED_QUEUES.map((queue) =>
    defineTask({ ...definition, queue, name: `${queue}.${definition.name}` }),
  )
}

/** Returns a task's public name, without the queue's prefix. */
export const publicNameOf = ({ name, queue }: Pick<AnyTask, 'name' | 'queue'>): string =>
  name.startsWith(`${queue}.`) ? name.slice(queue.length + 1) : name
