import type { TaskContext } from '../context.ts'

/**
 * Runs batches until one processes fewer than `batchSize` rows, and returns the total. Each batch has its own
 * transaction, so no statement holds its locks for long. After an abort, the next attempt continues where this one
 * stopped.
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
