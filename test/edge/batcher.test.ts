import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatcher } from '../../edge/pipeline/write/enqueuer.ts'

/** Requests that arrive together share the work, up to the maximum size of a batch. */

test('items of one turn run together, up to the maximum, and each gets its result', async () => {
  const batches: number[][] = []
  const batcher = createBatcher<number, string>({
    max: 3,
    runAll: async (items) => {
      batches.push([...items])
      return items.map(String)
    },
  })
  assert.deepEqual(await Promise.all([1, 2, 3, 4].map((item) => batcher.run(item))), ['1', '2', '3', '4'])
  assert.deepEqual(batches, [[1, 2, 3], [4]])
})

test('an item above the maximum runs alone', async () => {
  const sizes: number[] = []
  const batcher = createBatcher<number, number>({
    max: 3,
    sizeOf: (item) => item,
    runAll: async (items) => {
      sizes.push(items.length)
      return items
    },
  })
  await Promise.all([5, 1, 2, 5].map((item) => batcher.run(item)))
  assert.deepEqual(sizes, [1, 2, 1])
})
