import type { TaskDefinition } from '../task.ts'
import { cpuIntensive } from './cpu-intensive.task.ts'
import { failureTesting } from './failure-testing.task.ts'
import { ioSimulation } from './io-simulation.task.ts'
import { memoryOperations } from './memory-operations.task.ts'
import { publicNameOf } from './on-queues.ts'

const LOADS = [
  ioSimulation,
  cpuIntensive,
  memoryOperations,
  failureTesting,
] as unknown as readonly (readonly TaskDefinition<unknown, unknown>[])[]

/** Names of the tasks that a load may run. */
export const LOAD_NAMES = LOADS.map(([task]) => publicNameOf(task!))

/** Finds the task of a load on a queue. */
export function findLoadTask(name: string, queue: string): TaskDefinition<unknown, unknown> {
  return LOADS.flat().find((task) => task.queue === queue && publicNameOf(task) === name)!
}
