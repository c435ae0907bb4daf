import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Scores the sentiment of conversations that have become inactive. */
export const scoreSentiment = defineTask({
  name: 'ai.sentiment',
  queue: 'ai',
  pool: 'io',
  actor: () => 'ai.sentiment',
  whenBusy: 'join',
  tries: 1,
  payload: z.strictObject({}),
  result: z.strictObject({ scored: z.int(), failed: z.int() }),
  run: loadLazily(() => import('./sentiment.work.ts')),
})
