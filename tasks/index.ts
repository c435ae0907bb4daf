import { extract } from './documents/extract.ts'
import { housekeeping } from './system/housekeeping.ts'
import { noop } from './system/noop.ts'
import type { AnyTask } from './task.ts'

/** Every task, one line each. */
export const tasks: readonly AnyTask[] = [extract, housekeeping, noop] as unknown as readonly AnyTask[]

const byName = new Map(tasks.map((task) => [task.name, task]))

/** @throws when no task has the name: the job is of another version. */
export function taskNamed(name: string): AnyTask & { run(ctx: unknown, payload: unknown): Promise<unknown> } {
  const task = byName.get(name)
  if (task === undefined) throw new Error(`No task is named ${name}`)
  return task as never
}

/** The queue groups, in order of their names. */
export const QUEUES: readonly string[] = [...new Set(tasks.map((task) => task.queue))].sort()
