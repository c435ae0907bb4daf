/**
 * What each model of the catalog that recognizes speech takes, answers and costs. Sources: developers.openai.com
 * (/api/docs/guides/speech-to-text, /api/docs/models, /api/reference/resources/audio), console.groq.com
 * (/docs/speech-to-text, /pricing), docs.mistral.ai/studio/audio/speech-to-text; as of November 2026.
 */

/** US dollars, as exact decimals: for an hour of audio, or for a million tokens; null: not known. */
type Price =
  | { readonly hour: string; readonly minSeconds?: number }
  | { readonly input: string; readonly output: string }
  | null

export interface Recognition {
  /**
   * What it is asked for: `json` has text, and languages if the model detects them; `verbose_json` has segments,
   * language and duration, too; `diarized_json` has segments with speakers; `voxtral` is Mistral's own.
   */
  readonly format: 'json' | 'verbose_json' | 'diarized_json' | 'voxtral'
  /** Whether it sends the text while it listens; the others answer once, at the end. */
  readonly streams: boolean
  readonly takesPrompt: boolean
  readonly price: Price
}

const streaming = (price: Price): Recognition => ({ format: 'json', streams: true, takesPrompt: true, price })
const whisper = (price: Price): Recognition => ({
  format: 'verbose_json',
  streams: false,
  takesPrompt: true,
  price,
})

/** By the ids of the catalog. */
const RECOGNITION: ReadonlyMap<string, Recognition> = new Map(
  Object.entries({
    'gpt-transcribe': streaming({ hour: '0.27' }),
    'gpt-4o-transcribe': streaming({ input: '2.5', output: '10' }),
    'gpt-4o-mini-transcribe': streaming({ input: '1.25', output: '5' }),
    'gpt-4o-transcribe-diarize': {
      format: 'diarized_json',
      streams: true,
      takesPrompt: false,
      price: { input: '2.5', output: '10' },
    },
    'whisper-1': whisper({ hour: '0.36' }),
    'whisper-large-v3-turbo': whisper({ hour: '0.04', minSeconds: 10 }),
    'whisper-large-v3': whisper({ hour: '0.111', minSeconds: 10 }),
    'voxtral-mini-latest': { format: 'voxtral', streams: false, takesPrompt: false, price: null },
  }),
)

/** @throws RangeError for a model that the catalog has not. */
export function recognitionOf(model: string): Recognition {
  const found = RECOGNITION.get(model)
  if (found === undefined) throw new RangeError(`Nothing is known of the model ${model}`)
  return found
}

/**
 * The most bytes that a provider takes: OpenAI, and Groq without a plan, refuse more
 * (developers.openai.com/api/docs/guides/speech-to-text: 25 MB, which is 25 · 1024 · 1024 bytes).
 */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024

/** The media type that `sniffMediaType` finds -> the ending by which providers know such a file. */
const ENDINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'audio/flac': 'flac',
    'audio/mp4': 'm4a',
    'audio/mpeg': 'mp3',
    'audio/ogg': 'ogg',
    'audio/wav': 'wav',
    'audio/x-m4a': 'm4a',
    'video/mp1s': 'mpeg',
    'video/mp2p': 'mpeg',
    'video/mp4': 'mp4',
    'video/mpeg': 'mpeg',
    'video/ogg': 'ogg',
    'video/webm': 'webm',
    'video/x-m4v': 'mp4',
  }),
)

/** A neutral name for a file, with the ending of its media type; null: no provider takes such a file. */
export function audioName(mediaType: string): string | null {
  const ending = ENDINGS.get(mediaType.split(';', 1)[0]!.trim().toLowerCase())
  return ending === undefined ? null : `audio.${ending}`
}
