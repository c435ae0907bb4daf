import type { TaskContext } from './context.ts'

/**
 * Repeats a batch, each in its own transaction, until one processes fewer than `batchSize` rows. No statement holds its
 * locks for long. The next attempt continues where an aborted one stopped.
 * Returns the total of all batches.
 *
 * @param runBatch processes one batch; receives the total so far
 */
export async function runInBatches(
  signal: TaskContext['signal'],
  batchSize: number,
  runBatch: (done: number) => Promise<{ readonly count: number }>,
): Promise<number> {
  let done = 0
  for (let count = batchSize; count >= batchSize; done += count) {
    signal.throwIfAborted()
    count = (await runBatch(done)).count
  }
  return done
}
