import type { Failure } from '../../sql/errors.ts'
import type { Speech } from '../../sql/voice.ts'
import type { AiProvider } from '../ai/providers.ts'

/** The tasks' interface to speech synthesis, implemented by `workers/providers/voice/speech.ts`. */
export interface Speaker {
  /**
   * Synthesizes a text; yields its MP3 in pieces as they arrive. The timeout for each piece is `AI_TIMEOUT_SECONDS`.
   *
   * @throws fail('ai.missing_key'), or the signal's reason. Before the first piece, throws fail('ai.failed') (transient)
   * or fail('ai.refused') (permanent); after it, fail('ai.interrupted').
   */
  speak(speech: Speech, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** The tasks' interface to speech recognition, implemented by `workers/providers/voice/transcription.ts`. */
export interface Transcriber {
  /**
   * Sends a recording in pieces and returns its transcript, or the provider's failure. Streaming models pass each piece of
   * text to `onText` as it arrives. Their idle timeout is `AI_TIMEOUT_SECONDS`; other models have twice as long.
   *
   * @throws fail('ai.missing_key'), the error of `recording.pieces`, or the signal's reason.
   */
  transcribe(
    recording: Recording,
    signal: AbortSignal,
    onText: (text: string) => void,
  ): Promise<TranscriptionOutcome>
}

export interface Recording {
  readonly provider: AiProvider
  readonly model: string
  /** ISO 639; null lets the provider detect it. */
  readonly language: string | null
  readonly prompt: string | null
  /** A file name whose extension names the format of the bytes. */
  readonly fileName: string
  readonly mediaType: string
  /** The bytes. A piece is valid only until the caller requests the next one. */
  readonly pieces: AsyncIterable<Uint8Array>
}

/** The outcome of a transcription request. */
export type TranscriptionOutcome =
  | { readonly kind: 'transcript'; readonly transcript: Transcript }
  /** `isFree` is true if the provider has certainly not charged the request. */
  | { readonly kind: 'failure'; readonly failure: Failure; readonly isFree: boolean }

export interface Transcript {
  readonly text: string
  /** The language that the model detected (ISO 639); null if it does not report one. */
  readonly language: string | null
  readonly durationSeconds: number | null
  /** Empty if the model returns no segments. */
  readonly segments: readonly Segment[]
  readonly used: RecognitionUsage
}

/** A part of a transcript; times are seconds from the start of the recording. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
  /** Null if the model does not distinguish speakers. */
  readonly speaker: string | null
}

/** The usage that the provider reports; a count is null if it does not report it. */
export interface RecognitionUsage {
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly audioSeconds: number | null
}
