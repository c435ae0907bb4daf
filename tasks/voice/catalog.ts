import { type AiProvider, keyName } from '../ai/providers.ts'

/**
 * Providers that synthesize or recognize speech, with their models and voices. For synthesis only those whose endpoint
 * answers MP3: Groq's only answers WAV (livekit/agents-js and others: `response_format must be one of [wav]`), Google
 * has none in OpenAI's protocol. Sources: developers.openai.com/api/reference/resources/audio, /api/docs/deprecations,
 * docs.mistral.ai/studio/audio, console.groq.com/docs/speech-to-text; as of November 2026.
 */

export interface VoiceModel {
  readonly id: string
  readonly name: string
  readonly provider_id: AiProvider
  readonly quality: 'standard' | 'high'
  /** When its provider shuts it down; null: not announced. */
  readonly retires_on: string | null
}

export interface Voice {
  readonly id: string
  readonly name: string
  readonly provider_id: AiProvider
  readonly category: 'general' | 'conversation' | 'narration'
  /** As it sounds. */
  readonly gender: 'female' | 'male' | 'neutral'
  readonly preview_text: string
  /** Ids of the models that speak with it. */
  readonly models: readonly string[]
}

export interface VoiceProvider {
  readonly id: AiProvider
  readonly name: string
  readonly requires_api_key: boolean
  readonly api_key_env_var: string
  readonly is_local: boolean
}

const provider = (id: AiProvider, name: string): VoiceProvider => ({
  id,
  name,
  requires_api_key: true,
  api_key_env_var: keyName(id),
  is_local: false,
})
const OPENAI = provider('openai', 'OpenAI')
const GROQ = provider('groq', 'Groq')
const MISTRAL = provider('mistral', 'Mistral')

const model = (
  { id: provider_id }: VoiceProvider,
  id: string,
  name: string,
  quality: VoiceModel['quality'],
  retires_on: string | null = null,
): VoiceModel => ({ id, name, provider_id, quality, retires_on })

/** The first of each is the default. */
export const TTS_PROVIDERS: readonly VoiceProvider[] = [OPENAI, MISTRAL]
const TTS_ENDS = '2027-01-06'
export const TTS_MODELS: readonly VoiceModel[] = [
  model(OPENAI, 'gpt-4o-mini-tts', 'GPT-4o mini TTS', 'high', TTS_ENDS),
  model(OPENAI, 'tts-1-hd', 'TTS-1 HD', 'high', TTS_ENDS),
  model(OPENAI, 'tts-1', 'TTS-1', 'standard', TTS_ENDS),
  model(MISTRAL, 'voxtral-mini-tts-3-0', 'Voxtral Mini TTS 3', 'high'),
]

const NEWER = ['gpt-4o-mini-tts']
const EVERY = ['gpt-4o-mini-tts', 'tts-1-hd', 'tts-1']
const VOXTRAL = ['voxtral-mini-tts-3-0']

const voice = (
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

/** The first of each provider is its default; ids are unique across providers. */
export const VOICES: readonly Voice[] = [
  voice(OPENAI, EVERY, ['alloy', 'Alloy', 'neutral', 'general']),
  voice(OPENAI, EVERY, ['ash', 'Ash', 'male', 'conversation']),
  voice(OPENAI, NEWER, ['ballad', 'Ballad', 'male', 'narration']),
  voice(OPENAI, NEWER, ['cedar', 'Cedar', 'male', 'conversation']),
  voice(OPENAI, EVERY, ['coral', 'Coral', 'female', 'conversation']),
  voice(OPENAI, EVERY, ['echo', 'Echo', 'male', 'general']),
  voice(OPENAI, EVERY, ['fable', 'Fable', 'neutral', 'narration']),
  voice(OPENAI, NEWER, ['marin', 'Marin', 'female', 'conversation']),
  voice(OPENAI, EVERY, ['nova', 'Nova', 'female', 'conversation']),
  voice(OPENAI, EVERY, ['onyx', 'Onyx', 'male', 'narration']),
  voice(OPENAI, EVERY, ['sage', 'Sage', 'female', 'general']),
  voice(OPENAI, EVERY, ['shimmer', 'Shimmer', 'female', 'general']),
  voice(OPENAI, NEWER, ['verse', 'Verse', 'male', 'general']),
  voice(MISTRAL, VOXTRAL, ['en_paul_neutral', 'Paul', 'male', 'general']),
  voice(MISTRAL, VOXTRAL, ['gb_jane_neutral', 'Jane', 'female', 'general']),
]

export const STT_PROVIDERS: readonly VoiceProvider[] = [OPENAI, GROQ, MISTRAL]
const STT_ENDS = '2027-02-26'
export const STT_MODELS: readonly VoiceModel[] = [
  model(OPENAI, 'gpt-transcribe', 'GPT Transcribe', 'high'),
  model(OPENAI, 'gpt-4o-transcribe', 'GPT-4o Transcribe', 'high', STT_ENDS),
  model(OPENAI, 'gpt-4o-mini-transcribe', 'GPT-4o mini Transcribe', 'standard', STT_ENDS),
  model(OPENAI, 'gpt-4o-transcribe-diarize', 'GPT-4o Transcribe Diarize', 'high', STT_ENDS),
  model(OPENAI, 'whisper-1', 'Whisper', 'standard', STT_ENDS),
  model(GROQ, 'whisper-large-v3-turbo', 'Whisper Large v3 Turbo', 'standard'),
  model(GROQ, 'whisper-large-v3', 'Whisper Large v3', 'high'),
  model(MISTRAL, 'voxtral-mini-latest', 'Voxtral Mini', 'standard'),
]

/** The entries of a provider, in order. */
export const ofProvider = <T extends { readonly provider_id: string }>(all: readonly T[], id: string): T[] =>
  all.filter(({ provider_id }) => provider_id === id)
