import type { Speech } from '../../sql/voice.ts'

/** Makers of speech as tasks see them. `workers/providers/voice/speech.ts` has the real ones. */
export interface Speaker {
  /**
   * Has a text spoken; answers its MP3 in pieces as they come. Waits for no piece longer than the settings say.
   *
   * @throws fail('ai.missing_key'); fail('ai.failed') for now and fail('ai.refused') for good, before the first piece;
   * fail('ai.interrupted') after it; the signal's reason.
   */
  speak(speech: Speech, signal: AbortSignal): AsyncIterable<Uint8Array>
}
