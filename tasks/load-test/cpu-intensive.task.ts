import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { defineOnNamedQueues } from './on-queues.ts'

// Length of the slices of work, between which the thread checks for cancellation.
const SLICE_MS = 20

/** Keeps one thread busy with a chain of SHA-256 hashes. */
export const cpuIntensive = defineOnNamedQueues({
  name: 'cpu_intensive_task',
  pool: 'cpu',
  payload: z.strictObject({
    duration_ms: z.int().min(1).max(60_000).default(500).describe('Duration for which the thread is busy'),
  }),
  result: z.strictObject({ hashes: z.int(), digest: z.string(), duration_ms: z.number() }),
  run: async ({ signal }, { duration_ms }) => {
    let digest: Buffer = Buffer.alloc(32)
    let hashes = 0
    const startedAt = performance.now()
    const end = startedAt + duration_ms
    while (performance.now() < end) {
      signal.throwIfAborted()
      for (const slice = Math.min(end, performance.now() + SLICE_MS); performance.now() < slice; hashes++)
        digest = createHash('sha256').update(digest).digest()
      await nextTurn()
    }
    return {
      hashes,
      digest: digest.toString('hex'),
      duration_ms: Math.round((performance.now() - startedAt) * 100) / 100,
    }
  },
})
