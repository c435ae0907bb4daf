import type { TaskContext } from './context.ts'

/**
 * Repeats a batch, each in its own transaction, until one processes fewer than `full` rows. No statement holds its
 * locks for long. The next attempt continues where an aborted one stopped.
 * Returns the total of all batches.
 *
 * @param some processes one batch; receives the total so far
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
