import { z } from 'zod'
import { defineTask } from '../task.ts'

/** Does nothing; used to measure the round trip of a job. */
export const noop = defineTask({
  name: 'system.noop',
  queue: 'system',
  pool: 'io',
  payload: z.strictObject({ echo: z.string().max(1000).default('') }),
  result: z.strictObject({ echo: z.string() }),
  run: (_ctx, { echo }) => Promise.resolve({ echo }),
})
