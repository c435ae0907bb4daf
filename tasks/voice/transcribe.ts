import { z } from 'zod'
import { AI_PROVIDERS } from '../ai/providers.ts'
import { defineTask, lazily } from '../task.ts'
import { Transcription } from './transcription.ts'

const Payload = z.strictObject({
  transcription_id: z.uuid(),
  /** The recording. */
  document_id: z.int(),
  provider: z.enum(AI_PROVIDERS),
  model: z.string(),
  /** Null: detected. */
  language: z.string().nullable(),
  /** The digest of the prompt; null: none. */
  prompt_sha256: z.string().nullable(),
})
export type TranscribePayload = z.output<typeof Payload>

/**
 * Transcribes a document, one job of each at a time: a request for the same, made the same way, joins the one under way.
 * Its events are those of a chat: `chunk` for each piece of the text while the model listens, `restart` when an earlier
 * attempt has shown pieces, which are now void, and `usage` for what an attempt has used. The job's end settles the
 * transcription (`voice_transcription_settle`).
 */
export const transcribe = defineTask({
  name: 'voice.transcribe',
  queue: 'voice',
  pool: 'io',
  payload: Payload,
  result: Transcription,
  actor: ({ document_id }) => `transcription:${document_id}`,
  whenBusy: 'join',
  joins: ({ provider, model, language, prompt_sha256 }) => ({ provider, model, language, prompt_sha256 }),
  links: ({ document_id }) => [{ kind: 'document', id: document_id }],
  settle: 'voice_transcription_settle',
  run: lazily(() => import('./transcribe-run.ts')),
})
