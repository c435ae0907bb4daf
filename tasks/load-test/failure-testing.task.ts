import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { defineOnNamedQueues } from './on-queues.ts'

/** Fails at random: permanently, or transiently so that a retry may succeed. */
export const failureTesting = defineOnNamedQueues({
  name: 'failure_testing_task',
  pool: 'io',
  payload: z.strictObject({
    probability: z.number().min(0).max(1).default(0.5).describe('Probability that an attempt fails'),
    curable: z
      .boolean()
      .default(false)
      .describe('True makes failures transient: they are retried, up to `WORKER_MAX_TRIES` attempts'),
  }),
  result: z.strictObject({ attempt: z.int(), drawn: z.number() }),
  run: async ({ job }, { probability, curable }) => {
    // Math.random is in [0, 1): 0 never fails and 1 always does.
    const drawn = Math.random()
    if (drawn < probability) throw fail(curable ? 'task.chosen_passing_failure' : 'task.chosen_failure')
    return { attempt: job.attempt, drawn }
  },
})
