import { fail } from '../../../sql/errors.ts'
import type { VoiceSettings } from '../../../sql/voice/previews.ts'
import {
  filterByProvider,
  TTS_MODELS,
  TTS_PROVIDERS,
  VOICES,
  type Voice,
} from '../../../tasks/voice/catalog.ts'

/** Chooses the voice and the model of a request for speech. */

/** @throws fail('voice.voice_missing') */
export function requireVoice(id: string): Voice {
  const voice = VOICES.find((one) => one.id === id)
  if (voice === undefined) throw fail('voice.voice_missing')
  return voice
}

/** @throws fail('voice.unknown') if the voice does not support the wanted model. */
export function chooseModel({ models }: Voice, wanted: string | undefined, fallback: string): string {
  if (wanted === undefined) return models.includes(fallback) ? fallback : models[0]!
  if (models.includes(wanted)) return wanted
  throw createUnknownError('model', wanted, models)
}

interface VoiceChoice {
  readonly voice_id?: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
}

/**
 * Returns the wanted voice. The default is the voice of the settings if it has the wanted provider and model, or else the
 * first one that has them. @throws fail('voice.voice_missing'), fail('voice.unknown')
 */
export function chooseVoice(choice: VoiceChoice, settings: VoiceSettings): Voice {
  const { voice_id: id, provider, model } = choice
  const providers = TTS_PROVIDERS.map((one) => one.id)
  if (provider !== undefined && !providers.some((one) => one === provider))
    throw createUnknownError('provider', provider, providers)
  if (id !== undefined) {
    const voice = requireVoice(id)
    if (provider === undefined || voice.provider_id === provider) return voice
    throw createUnknownError('provider', provider, [voice.provider_id])
  }
  const known = provider === undefined ? VOICES : filterByProvider(VOICES, provider)
  const fitting = model === undefined ? known : known.filter(({ models }) => models.includes(model))
  if (fitting.length === 0) {
    const models = provider === undefined ? TTS_MODELS : filterByProvider(TTS_MODELS, provider)
    throw createUnknownError(
      'model',
      model!,
      models.map((one) => one.id),
    )
  }
  return fitting.find((one) => one.id === settings.tts_voice) ?? fitting[0]!
}

const createUnknownError = (field: string, id: string, known: readonly string[]): Error =>
  fail('voice.unknown', { field, id, known: known.join(', ') })
