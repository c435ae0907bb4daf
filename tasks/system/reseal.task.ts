import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Seals stored texts under the current SECRET_KEY that a key of SECRET_KEYS_PREVIOUS has sealed. Does nothing without
 * previous keys.
 */
export const resealTexts = defineTask({
  name: 'system.reseal',
  queue: 'system',
  pool: 'io',
  actor: () => 'reseal',
  whenBusy: 'join',
  payload: z.strictObject({}),
  /** `left` texts still need a previous key: they changed during the run, or no key opens them. */
  result: z.strictObject({ renewed: z.int(), left: z.int() }),
  run: loadLazily(() => import('./reseal.work.ts')),
})
