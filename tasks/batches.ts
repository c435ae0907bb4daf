import type { TaskContext } from './context.ts'

/**
 * Repeats what does some of the work, in a transaction of its own, until one time does less than `full`: then nothing is
 * left. However much there is, no statement holds its locks for long, and what an aborted attempt leaves is the next one's.
 * Returns how much was done.
 *
 * @param some does some of it and returns how much; gets how much was done before.
 */
export async function inBatches(
  signal: TaskContext['signal'],
  full: number,
  some: (done: number) => Promise<{ readonly count: number }>,
): Promise<number> {
  let done = 0
  for (let count = full; count >= full; done += count) {
    signal.throwIfAborted()
    count = (await some(done)).count
  }
  return done
}
