import type { AnyTask, TaskDefinition } from '../task.ts'
import { defineTask } from '../task.ts'

/** The queues that callers of `/tasks` may name. */
export const NAMED_QUEUES = ['load_test', 'system'] as const
export type NamedQueue = (typeof NAMED_QUEUES)[number]

/** One task for each named queue: a queue's runner only knows its own tasks, so each copy has a name of its own. */
export function onNamedQueues<P, R>(
  definition: Omit<TaskDefinition<P, R>, 'queue'>,
): readonly TaskDefinition<P, R>[] {
  return NAMED_QUEUES.map((queue) =>
    defineTask({ ...definition, queue, name: `${queue}.${definition.name}` }),
  )
}

/** The name for callers: without the queue's prefix. */
export const publicName = ({ name, queue }: Pick<AnyTask, 'name' | 'queue'>): string =>
  name.startsWith(`${queue}.`) ? name.slice(queue.length + 1) : name
