import type { Failure } from '../../sql/errors.ts'
import type { Speech } from '../../sql/voice/previews.ts'
import type { AiProvider } from '../ai/providers.ts'

/** Speech synthesis for the tasks, implemented by `workers/providers/voice/speech.ts`. */
export interface Speaker {
  /**
   * Synthesizes a text and yields its MP3 in pieces as they arrive. `AI_TIMEOUT_SECONDS` limits the wait for each
   * piece.
   * @throws fail('ai.missing_key'), or the signal's reason. Before the first piece, throws fail('ai.failed')
   * (transient) or fail('ai.refused') (permanent). After the first piece, throws fail('ai.interrupted').
   */
  speak(speech: Speech, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** Speech recognition for the tasks, implemented by `workers/providers/voice/transcription.ts`. */
export interface Transcriber {
  /**
   * Sends a recording in pieces and returns its transcript, or the provider's failure. Streaming models pass each piece
   * of text to `onText` as it arrives. The idle timeout is `AI_TIMEOUT_SECONDS` for streaming models, and twice that
   * for others.
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
  /** BCP 47 tag; null lets the provider detect the language. */
  readonly language: string | null
  readonly prompt: string | null
  /** File name whose extension matches the format of the bytes. */
  readonly fileName: string
  readonly mediaType: string
  /** The recording's bytes. A piece is valid only until the caller requests the next one. */
  readonly pieces: AsyncIterable<Uint8Array>
}

/** Cuts recordings for providers and models with limits, implemented by `workers/providers/voice/cutting.ts`. */
export interface RecordingCutter {
  /**
   * Cuts the piece that starts at `from`, in seconds. It ends at a pause, and is within both limits. `read` returns the
   * recording's bytes, and may be called twice.
   * @throws fail('voice.audio_too_large') if the recording cannot be cut, or the signal's reason.
   */
  cut(
    read: () => AsyncIterable<Uint8Array>,
    limits: PieceLimits,
    signal: AbortSignal,
  ): Promise<RecordingPiece>
}

export interface PieceLimits {
  readonly from: number
  readonly maxBytes: number
  readonly maxSeconds: number
}

/** A part of a recording as a file of its own. It occupies a child process until its release. */
export interface RecordingPiece extends Pick<Recording, 'mediaType' | 'pieces'> {
  /** Times in seconds from the start of the recording. The next piece starts at `end`. */
  readonly start: number
  readonly end: number
  /** Duration of the whole recording. */
  readonly totalSeconds: number
  readonly isLast: boolean
  release(): void
}

export type TranscriptionOutcome =
  | { readonly kind: 'transcript'; readonly transcript: Transcript }
  /** `isFree` is true if the provider has certainly not charged for the request. */
  | { readonly kind: 'failure'; readonly failure: Failure; readonly isFree: boolean }

export interface Transcript {
  readonly text: string
  /** The detected language (BCP 47); null if the model does not report one. */
  readonly language: string | null
  readonly durationSeconds: number | null
  /** Empty if the model returns no segments. Segments of silence are left out. */
  readonly segments: readonly Segment[]
  readonly used: RecognitionUsage
}

/** Part of a transcript, with times in seconds from the start of the recording. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
  /** Null if the model does not distinguish speakers. */
  readonly speaker: string | null
  /** Probability that the segment has no speech; null if the model does not report it. */
  readonly noSpeechProb: number | null
  /** Average logarithm of the probabilities of the words; null if the model does not report it. */
  readonly avgLogprob: number | null
  /** Ratio that is high for repetitive text; null if the model does not report it. */
  readonly compressionRatio: number | null
}

/** The usage that the provider reports. A count is null if the provider does not report it. */
export interface RecognitionUsage {
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly audioSeconds: number | null
}
