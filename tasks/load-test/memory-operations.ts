import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { onNamedQueues } from './on-queues.ts'

const MIB = 2 ** 20
const PIECE = 4 * MIB
const PAGE = 4096

/** Allocates memory, touches every page of it, adds up what it wrote and frees it; `rounds` times. */
export const memoryOperations = onNamedQueues({
  name: 'memory_operations_task',
  pool: 'cpu',
  payload: z.strictObject({
    megabytes: z.int().min(1).max(512).default(64).describe('MiB held at once'),
    rounds: z.int().min(1).max(100).default(3),
  }),
  result: z.strictObject({
    rounds: z.int(),
    allocated_bytes: z.int().describe('In all rounds together'),
    checksum: z.int(),
    /** Buffers of the thread outside its heap, at their peak and after the last round. */
    peak_bytes: z.int(),
    left_bytes: z.int(),
  }),
  run: async ({ signal }, { megabytes, rounds }) => {
    let checksum = 0
    let peak = 0
    for (let round = 1; round <= rounds; round++) {
      signal.throwIfAborted()
      const held = take(megabytes * MIB)
      checksum += sum(held)
      peak = Math.max(peak, process.memoryUsage().arrayBuffers)
      // Freed at once rather than by the garbage collector, or the rounds would add up.
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

function take(bytes: number): Uint8Array<ArrayBuffer>[] {
  const pieces = []
  for (let at = 0; at < bytes; at += PIECE) {
    const piece = new Uint8Array(Math.min(PIECE, bytes - at))
    for (let page = 0; page < piece.length; page += PAGE) piece[page] = 1
    pieces.push(piece)
  }
  return pieces
}

function sum(pieces: readonly Uint8Array[]): number {
  let total = 0
  for (const piece of pieces) for (let page = 0; page < piece.length; page += PAGE) total += piece[page]!
  return total
}
