import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Speech } from '../../sql/voice/previews.ts'
import { AI_PROVIDERS } from '../ai/providers.ts'
import { defineTask, loadLazily } from '../task.ts'

/** Returns the key under which an owner's speech is stored. */
export function speechDigestOf(ownerId: number | null, language: string | null, speech: Speech): Buffer {
  const { provider, model, voice, speed, text } = speech
  return createHash('sha256')
    .update(JSON.stringify(['speech', ownerId, language, provider, model, voice, speed, text]))
    .digest()
}

/**
 * Synthesizes a text of any length in pieces, as `voice.preview` does a short one. Requests of an owner for the same
 * speech share one job. A retry continues after the complete pieces. `usage` events have the usage of each piece.
 */
export const synthesizeSpeech = defineTask({
  name: 'voice.speech',
  queue: 'voice',
  pool: 'io',
  actor: ({ digest }) => `voice_speech:${digest}`,
  whenBusy: 'join',
  joinCriteria: ({ digest }) => ({ digest }),
  payload: z.strictObject({
    digest: z.string().regex(/^[0-9a-f]{64}$/),
    provider: z.enum(AI_PROVIDERS),
    model: z.string(),
    /** API key of the request, whose budget the speech uses; absent without one. */
    key_id: z.uuid().optional(),
  }),
  result: z.strictObject({
    /** Reads the audio at `/voice/speech/{id}`. */
    id: z.uuid(),
    byte_size: z.int(),
  }),
  timeoutSeconds: 4 * 3600,
  settleFunction: 'voice_speech_settle',
  run: loadLazily(() => import('./speech.work.ts')),
})
