import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { MAX_PUSH_SECONDS } from './endpoint.ts'

/**
 * Sends a job of a worker queue to the endpoint of the queue. No job has this name: it runs the jobs of all worker queues
 * that have an endpoint.
 */
export const push = defineTask({
  name: 'push.send',
  queue: 'push',
  pool: 'io',
  payload: z.record(z.string(), z.unknown()),
  result: z.unknown(),
  timeoutSeconds: MAX_PUSH_SECONDS + 60,
  run: loadLazily(() => import('./push.work.ts')),
})
