import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { defineOnNamedQueues } from './on-queues.ts'

/** Waits, like a call to another service. Uses no CPU, so thousands run concurrently. */
export const ioSimulation = defineOnNamedQueues({
  name: 'io_simulation_task',
  pool: 'io',
  payload: z.strictObject({
    operations: z.int().min(1).max(100).default(3).describe('Number of consecutive waits'),
    duration_ms: z.int().min(0).max(60_000).default(100).describe('Length of each wait'),
  }),
  result: z.strictObject({
    operations: z.array(z.strictObject({ operation: z.int(), duration_ms: z.number() })),
    total_ms: z.number(),
  }),
  run: async ({ signal }, { operations, duration_ms }) => {
    const done: { operation: number; duration_ms: number }[] = []
    const startedAt = performance.now()
    for (let operation = 1; operation <= operations; operation++) {
      const from = performance.now()
      await delay(duration_ms, undefined, { signal })
      done.push({ operation, duration_ms: roundMs(performance.now() - from) })
    }
    return { operations: done, total_ms: roundMs(performance.now() - startedAt) }
  },
})

const roundMs = (ms: number): number => Math.round(ms * 100) / 100
