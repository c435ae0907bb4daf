import { z } from 'zod'
import { AI_PROVIDERS } from '../ai/providers.ts'
import { defineTask, loadLazily } from '../task.ts'
import { Transcription } from './transcription.ts'

const Payload = z.strictObject({
  transcription_id: z.uuid(),
  /** The recording. */
  document_id: z.int(),
  provider: z.enum(AI_PROVIDERS),
  model: z.string(),
  /** Null lets the provider detect it. */
  language: z.string().nullable(),
  /** The digest of the prompt; null without one. */
  prompt_sha256: z.string().nullable(),
})
export type TranscribePayload = z.output<typeof Payload>

/**
 * Transcribes a document, one job per document at a time. A request with the same parameters joins the current job.
 * Its events are those of a chat. `chunk` has a piece of text from a streaming model. `restart` voids the pieces of an
 * earlier attempt. `usage` has the usage of an attempt. The end of the job settles the transcription
 * (`voice_transcription_settle`).
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
  run: loadLazily(() => import('./transcribe-run.ts')),
})
