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
  /** Null lets the provider detect the language. */
  language: z.string().nullable(),
  /** Digest of the prompt; null without a prompt. */
  prompt_sha256: z.string().nullable(),
  /** API key of the request, whose budget the transcription uses; absent without one. */
  key_id: z.uuid().optional(),
})

/**
 * Transcribes a document. One such job per document runs at a time, and a request with the same parameters joins it.
 * The job emits the same events as a chat. `chunk` has text from a streaming model. `restart` voids the chunks of an
 * earlier attempt. `usage` has the usage of an attempt.
 * When the job ends, `voice_transcription_settle` stores the outcome.
 */
export const transcribe = defineTask({
  name: 'voice.transcribe',
  queue: 'voice',
  pool: 'io',
  payload: Payload,
  result: Transcription,
  actor: ({ document_id }) => `transcription:${document_id}`,
  whenBusy: 'join',
  joinCriteria: ({ provider, model, language, prompt_sha256 }) => ({
    provider,
    model,
    language,
    prompt_sha256,
  }),
  links: ({ document_id }) => [{ kind: 'document', id: document_id }],
  // A recording of a gigabyte has about 40 pieces.
  timeoutSeconds: 4 * 3600,
  settleFunction: 'voice_transcription_settle',
  run: loadLazily(() => import('./transcribe.work.ts')),
})
