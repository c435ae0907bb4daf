import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Speech } from '../../sql/voice.ts'
import { defineTask, lazily } from '../task.ts'

/** What a preview is kept under. */
export function digestOf({ provider, model, voice, speed, text }: Speech): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([provider, model, voice, speed, text]))
    .digest()
}

/**
 * Has a preview spoken, which is in `voice_preview` under its digest. Each piece is stored as it comes, and told of by an
 * event once it is. All who want the same preview share one job. An attempt that is cut short leaves a generation that
 * nobody will end; the next one begins its own.
 */
export const preview = defineTask({
  name: 'voice.preview',
  queue: 'voice',
  pool: 'io',
  actor: ({ digest }) => `voice_preview:${digest}`,
  whenBusy: 'join',
  payload: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{64}$/) }),
  result: z.strictObject({ byte_size: z.int() }),
  timeoutSeconds: 600,
  run: lazily(() => import('./preview-run.ts')),
})
