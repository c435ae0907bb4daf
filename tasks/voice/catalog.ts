import { type AiProvider, keySettingName } from '../ai/providers.ts'

/**
 * Providers of speech synthesis and recognition, with their models and voices. Synthesis requires MP3 output. Groq
 * returns only WAV (livekit/agents-js and others: `response_format must be one of [wav]`). Google has no endpoint in
 * OpenAI's protocol. Sources, as of November 2026: developers.openai.com/api/reference/resources/audio,
 * /api/docs/deprecations, docs.mistral.ai/studio/audio, console.groq.com/docs/speech-to-text.
 */

export interface VoiceModel {
  readonly id: string
  readonly name: string
  readonly provider_id: AiProvider
  readonly quality: 'standard' | 'high'
  /** The day on which the provider shuts the model down; null if no day is announced. */
  readonly retires_on: string | null
}

export interface Voice {
  readonly id: string
  readonly name: string
  readonly provider_id: AiProvider
  readonly category: 'general' | 'conversation' | 'narration'
  /** Perceived gender of the voice. */
  readonly gender: 'female' | 'male' | 'neutral'
  readonly preview_text: string
  /** Ids of the models that support the voice. */
  readonly models: readonly string[]
}

export interface VoiceProvider {
  readonly id: AiProvider
  readonly name: string
  readonly requires_api_key: boolean
  readonly api_key_env_var: string
  readonly is_local: boolean
}

const createProvider = (id: AiProvider, name: string): VoiceProvider => ({
  id,
  name,
  requires_api_key: true,
  api_key_env_var: keySettingName(id),
  is_local: false,
})
const OPENAI = createProvider('openai', 'OpenAI')
const GROQ = createProvider('groq', 'Groq')
const MISTRAL = createProvider('mistral', 'Mistral')

const createModel = (
  { id: provider_id }: VoiceProvider,
  id: string,
  name: string,
  quality: VoiceModel['quality'],
  retires_on: string | null = null,
): VoiceModel => ({ id, name, provider_id, quality, retires_on })

/** The first provider is the default, as is the first model of each provider. */
export const TTS_PROVIDERS: readonly VoiceProvider[] = [OPENAI, MISTRAL]
const TTS_SHUTDOWN_DATE = '2027-01-06'
export const TTS_MODELS: readonly VoiceModel[] = [
  createModel(OPENAI, 'gpt-4o-mini-tts', 'GPT-4o mini TTS', 'high', TTS_SHUTDOWN_DATE),
  createModel(OPENAI, 'tts-1-hd', 'TTS-1 HD', 'high', TTS_SHUTDOWN_DATE),
  createModel(OPENAI, 'tts-1', 'TTS-1', 'standard', TTS_SHUTDOWN_DATE),
  createModel(MISTRAL, 'voxtral-mini-tts-3-0', 'Voxtral Mini TTS 3', 'high'),
]

const MINI_TTS_ONLY = ['gpt-4o-mini-tts']
const ALL_OPENAI_TTS = ['gpt-4o-mini-tts', 'tts-1-hd', 'tts-1']
const VOXTRAL_TTS_ONLY = ['voxtral-mini-tts-3-0']

const createVoice = (
  { id: provider_id }: VoiceProvider,
  models: readonly string[],
  [id, name, gender, category]: readonly [string, string, Voice['gender'], Voice['category']],
): Voice => ({
  id,
  name,
  provider_id,
  category,
  gender,
  preview_text: `Hello, I am ${name}. This is how I sound when I read to you.`,
  models,
})

/** The first voice of each provider is its default; ids are unique across providers. */
export const VOICES: readonly Voice[] = [
  createVoice(OPENAI, ALL_OPENAI_TTS, ['alloy', 'Alloy', 'neutral', 'general']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['ash', 'Ash', 'male', 'conversation']),
  createVoice(OPENAI, MINI_TTS_ONLY, ['ballad', 'Ballad', 'male', 'narration']),
  createVoice(OPENAI, MINI_TTS_ONLY, ['cedar', 'Cedar', 'male', 'conversation']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['coral', 'Coral', 'female', 'conversation']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['echo', 'Echo', 'male', 'general']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['fable', 'Fable', 'neutral', 'narration']),
  createVoice(OPENAI, MINI_TTS_ONLY, ['marin', 'Marin', 'female', 'conversation']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['nova', 'Nova', 'female', 'conversation']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['onyx', 'Onyx', 'male', 'narration']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['sage', 'Sage', 'female', 'general']),
  createVoice(OPENAI, ALL_OPENAI_TTS, ['shimmer', 'Shimmer', 'female', 'general']),
  createVoice(OPENAI, MINI_TTS_ONLY, ['verse', 'Verse', 'male', 'general']),
  createVoice(MISTRAL, VOXTRAL_TTS_ONLY, ['en_paul_neutral', 'Paul', 'male', 'general']),
  createVoice(MISTRAL, VOXTRAL_TTS_ONLY, ['gb_jane_neutral', 'Jane', 'female', 'general']),
]

export const STT_PROVIDERS: readonly VoiceProvider[] = [OPENAI, GROQ, MISTRAL]
const STT_SHUTDOWN_DATE = '2027-02-26'
export const STT_MODELS: readonly VoiceModel[] = [
  createModel(OPENAI, 'gpt-transcribe', 'GPT Transcribe', 'high'),
  createModel(OPENAI, 'gpt-4o-transcribe', 'GPT-4o Transcribe', 'high', STT_SHUTDOWN_DATE),
  createModel(OPENAI, 'gpt-4o-mini-transcribe', 'GPT-4o mini Transcribe', 'standard', STT_SHUTDOWN_DATE),
  createModel(OPENAI, 'gpt-4o-transcribe-diarize', 'GPT-4o Transcribe Diarize', 'high', STT_SHUTDOWN_DATE),
  createModel(OPENAI, 'whisper-1', 'Whisper', 'standard', STT_SHUTDOWN_DATE),
  createModel(GROQ, 'whisper-large-v3-turbo', 'Whisper Large v3 Turbo', 'standard'),
  createModel(GROQ, 'whisper-large-v3', 'Whisper Large v3', 'high'),
  createModel(MISTRAL, 'voxtral-mini-latest', 'Voxtral Mini', 'standard'),
]

/** Returns the entries of a provider, in catalog order. */
export const filterByProvider = <T extends { readonly provider_id: string }>(
  all: readonly T[],
  id: string,
): T[] => all.filter(({ provider_id }) => provider_id === id)
