import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Speech } from '../../sql/voice.ts'
import { defineTask, lazily } from '../task.ts'

/** The key under which a preview is stored. */
export function digestOf({ provider, model, voice, speed, text }: Speech): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([provider, model, voice, speed, text]))
    .digest()
}

/**
 * Speaks the preview that `voice_preview` has under a digest. Each piece is stored as it arrives, and then announced by
 * an event. All requests for the same preview share one job. An attempt that is cut short leaves an unfinished
 * generation; the next one begins its own.
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
