import type { Speech } from '../../sql/voice.ts'

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
