import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { defineOnNamedQueues } from './on-queues.ts'

const MIB = 2 ** 20
const PIECE_BYTES = 4 * MIB
const PAGE_BYTES = 4096

/** Allocates memory, writes to every page of it, sums up the pages and frees the memory, `rounds` times. */
export const memoryOperations = defineOnNamedQueues({
  name: 'memory_operations_task',
  pool: 'cpu',
  payload: z.strictObject({
    megabytes: z.int().min(1).max(512).default(64).describe('MiB held at the same time'),
    rounds: z.int().min(1).max(100).default(3),
  }),
  result: z.strictObject({
    rounds: z.int(),
    allocated_bytes: z.int().describe('Total of all rounds'),
    checksum: z.int(),
    /** Bytes in buffers outside the thread's heap: the peak, and the amount after the last round. */
    peak_bytes: z.int(),
    left_bytes: z.int(),
  }),
  run: async ({ signal }, { megabytes, rounds }) => {
    let checksum = 0
    let peak = 0
    for (let round = 1; round <= rounds; round++) {
      signal.throwIfAborted()
      const held = allocate(megabytes * MIB)
      checksum += sumPages(held)
      peak = Math.max(peak, process.memoryUsage().arrayBuffers)
      // Free the memory immediately. The garbage collector would free it later, so that the rounds would add up.
      for (const piece of held) piece.buffer.transfer(0)
      await nextTurn()
    }
    return {
      rounds,
      allocated_bytes: rounds * megabytes * MIB,
      checksum,
      peak_bytes: peak,
      left_bytes: process.memoryUsage().arrayBuffers,
    }
  },
})

function allocate(bytes: number): Uint8Array<ArrayBuffer>[] {
  const pieces = []
  for (let at = 0; at < bytes; at += PIECE_BYTES) {
    const piece = new Uint8Array(Math.min(PIECE_BYTES, bytes - at))
    for (let page = 0; page < piece.length; page += PAGE_BYTES) piece[page] = 1
    pieces.push(piece)
  }
  return pieces
}

function sumPages(pieces: readonly Uint8Array[]): number {
  let total = 0
  for (const piece of pieces)
    for (let page = 0; page < piece.length; page += PAGE_BYTES) total += piece[page]!
  return total
}
