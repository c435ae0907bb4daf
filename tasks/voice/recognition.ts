import { fail } from '../../sql/errors.ts'

/**
 * Parameters, response formats and prices of the catalog's speech recognition models. Sources, as of November 2026:
 * developers.openai.com (/api/docs/guides/speech-to-text, /api/docs/models, /api/reference/resources/audio),
 * console.groq.com (/docs/speech-to-text, /pricing), docs.mistral.ai/studio/audio/speech-to-text.
 */

/** US dollars as exact decimals, per hour of audio or per million tokens; null if unknown. */
type Price =
  | { readonly hour: string; readonly minSeconds?: number }
  | { readonly input: string; readonly output: string }
  | null

export interface Recognition {
  /**
   * The requested response format. `json` has the text, and the languages if the model detects them. `verbose_json`
   * adds segments, language and duration. `diarized_json` has segments with speakers. `voxtral` is Mistral's format.
   */
  readonly format: 'json' | 'verbose_json' | 'diarized_json' | 'voxtral'
  /** True if the model streams the text; other models respond once, at the end. */
  readonly streams: boolean
  readonly acceptsPrompt: boolean
  /** Maximum duration of a piece of a recording that is cut. */
  readonly maxSeconds: number
  readonly price: Price
}

// Recordings of speech have 8 kbit/s or more.
const MIN_BYTES_PER_SECOND = 1000
// Models without a limit need one, too: a timeout or a failure costs a whole piece.
const DEFAULT_SECONDS = 2 * 3600
// OpenAI's models other than Whisper refuse recordings beyond 1400 s, and Mistral's beyond 30 minutes.
const GPT_4O_SECONDS = 1400
const VOXTRAL_SECONDS = 1800

const createStreaming = (price: Price): Recognition => ({
  format: 'json',
  streams: true,
  acceptsPrompt: true,
  maxSeconds: GPT_4O_SECONDS,
  price,
})
const createWhisper = (price: Price): Recognition => ({
  format: 'verbose_json',
  streams: false,
  acceptsPrompt: true,
  maxSeconds: DEFAULT_SECONDS,
  price,
})

/** Keyed by model id. */
const RECOGNITION_BY_MODEL: ReadonlyMap<string, Recognition> = new Map(
  Object.entries({
    'gpt-transcribe': createStreaming({ hour: '0.27' }),
    'gpt-4o-transcribe': createStreaming({ input: '2.5', output: '10' }),
    'gpt-4o-mini-transcribe': createStreaming({ input: '1.25', output: '5' }),
    'gpt-4o-transcribe-diarize': {
      format: 'diarized_json',
      streams: true,
      acceptsPrompt: false,
      maxSeconds: GPT_4O_SECONDS,
      price: { input: '2.5', output: '10' },
    },
    'whisper-1': createWhisper({ hour: '0.36' }),
    'whisper-large-v3-turbo': createWhisper({ hour: '0.04', minSeconds: 10 }),
    'whisper-large-v3': createWhisper({ hour: '0.111', minSeconds: 10 }),
    'voxtral-mini-latest': {
      format: 'voxtral',
      streams: false,
      acceptsPrompt: false,
      maxSeconds: VOXTRAL_SECONDS,
      price: null,
    },
  }),
)

/** Returns the recognition parameters of a model. @throws RangeError if the model is not in the catalog. */
export function requireRecognition(model: string): Recognition {
  const found = RECOGNITION_BY_MODEL.get(model)
  if (found === undefined) throw new RangeError(`Unknown speech recognition model: ${model}`)
  return found
}

/**
 * Upload limit of OpenAI and of Groq's free tier (developers.openai.com/api/docs/guides/speech-to-text: 25 MB, which is
 * 25 · 1024 · 1024 bytes).
 */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024

/** Maps each audio media type of `sniffMediaType` to the file extension that providers expect. */
const AUDIO_EXTENSIONS: ReadonlyMap<string, string> = new Map(
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

/** Returns a neutral file name with the extension of a media type, or null if no provider accepts the type. */
export function audioFileNameOf(mediaType: string): string | null {
  const extension = AUDIO_EXTENSIONS.get(mediaType.split(';', 1)[0]!.trim().toLowerCase())
  return extension === undefined ? null : `audio.${extension}`
}

const canCut = (fileName: string): boolean => !fileName.endsWith('.mpeg')

/** True if a recording can be cut, and may be longer than the model accepts. */
export function mayExceedDuration(model: string, type: string, size: number): boolean {
  const name = audioFileNameOf(type)
  const { maxSeconds } = requireRecognition(model)
  return (
    name !== null && canCut(name) && maxSeconds < DEFAULT_SECONDS && size > maxSeconds * MIN_BYTES_PER_SECOND
  )
}

/**
 * Checks that a recording is audio, and can be cut if it is too large for a provider.
 * @throws fail('voice.not_audio'), fail('voice.audio_too_large')
 */
export function requireCuttable(type: string, size: number): void {
  const name = audioFileNameOf(type)
  if (name === null) throw fail('voice.not_audio', { type })
  if (size > MAX_AUDIO_BYTES && !canCut(name))
    throw fail('voice.audio_too_large', { limit: MAX_AUDIO_BYTES, reason: `its type is ${type}` })
}
