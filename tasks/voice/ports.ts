import type { Failure } from '../../sql/errors.ts'
import type { Speech } from '../../sql/voice.ts'
import type { AiProvider } from '../ai/providers.ts'

/** Speech synthesis as tasks see it. `workers/providers/voice/speech.ts` implements it. */
export interface Speaker {
  /**
   * Speaks a text; yields its MP3 in pieces as they arrive. Waits for a piece no longer than `AI_TIMEOUT_SECONDS`.
   *
   * @throws fail('ai.missing_key'); fail('ai.failed') temporarily and fail('ai.refused') permanently, before the first
   * piece; fail('ai.interrupted') after it; the signal's reason.
   */
  speak(speech: Speech, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** Speech recognition as tasks see it. `workers/providers/voice/transcription.ts` implements it. */
export interface Transcriber {
  /**
   * Sends a recording in pieces, and returns what is said in it. A model that streams passes each piece of the text to
   * `onText` as it arrives, and may be silent no longer than `AI_TIMEOUT_SECONDS`; one that answers at the end has twice
   * as long.
   *
   * @throws fail('ai.missing_key'), what `recording.pieces` throws, and the signal's reason.
   */
  transcribe(recording: Recording, signal: AbortSignal, onText: (text: string) => void): Promise<Heard>
}

export interface Recording {
  readonly provider: AiProvider
  readonly model: string
  /** ISO 639; null: detected by the provider. */
  readonly language: string | null
  readonly prompt: string | null
  /** A name whose ending says what the bytes are. */
  readonly fileName: string
  readonly mediaType: string
  /** The bytes; a piece is valid until the next is requested. */
  readonly pieces: AsyncIterable<Uint8Array>
}

/** What became of a request for a transcription. */
export type Heard =
  | { readonly kind: 'transcript'; readonly transcript: Transcript }
  /** `isFree`: the provider has certainly not charged it. */
  | { readonly kind: 'failure'; readonly failure: Failure; readonly isFree: boolean }

export interface Transcript {
  readonly text: string
  /** ISO 639, as the model has detected it; null when it does not say. */
  readonly language: string | null
  readonly durationSeconds: number | null
  /** In seconds from the beginning; empty when the model gives none. */
  readonly segments: readonly Segment[]
  readonly used: RecognitionUsage
}

export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
  /** Null when the model does not tell speakers apart. */
  readonly speaker: string | null
}

/** What the provider counts; null: it does not. */
export interface RecognitionUsage {
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly audioSeconds: number | null
}
