import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Speech } from '../../sql/voice/previews.ts'
import { MAX_INTERACTIVE_PAUSE_SECONDS } from '../ai/providers.ts'
import { defineTask, loadLazily } from '../task.ts'

/** Returns the key under which a preview is stored. */
export function previewDigestOf({ provider, model, voice, speed, text }: Speech): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([provider, model, voice, speed, text]))
    .digest()
}

/**
 * Synthesizes the preview that was requested under a digest. Stores each piece as it arrives, then emits an event for
 * it. Requests for the same preview share one job. An interrupted attempt leaves an unfinished generation, and the next
 * attempt starts a new one.
 */
export const synthesizePreview = defineTask({
  name: 'voice.preview',
  queue: 'voice',
  pool: 'io',
  actor: ({ digest }) => `voice_preview:${digest}`,
  whenBusy: 'join',
  maxPauseSeconds: MAX_INTERACTIVE_PAUSE_SECONDS,
  payload: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{64}$/) }),
  result: z.strictObject({ byte_size: z.int() }),
  timeoutSeconds: 600,
  run: loadLazily(() => import('./preview.work.ts')),
})
