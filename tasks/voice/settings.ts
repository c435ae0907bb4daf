import { fail } from '../../sql/errors.ts'
import type { VoiceSettings } from '../../sql/voice.ts'
import { ofProvider, STT_MODELS, STT_PROVIDERS, TTS_MODELS, TTS_PROVIDERS, VOICES } from './catalog.ts'

/** The settings of voices, chosen from the catalog. */

export const DEFAULT_VOICE_SETTINGS: VoiceSettings = {
  tts_provider: 'openai',
  tts_model: 'gpt-4o-mini-tts',
  tts_voice: 'alloy',
  tts_speed: 1,
  stt_provider: 'openai',
  stt_model: 'gpt-transcribe',
  stt_language: null,
}

/**
 * The settings after a change. If it sets another provider without a model or voice, these are its first ones.
 * @throws fail('voice.unknown') for values that the catalog does not have, or not in this combination.
 */
export function changedSettings(before: VoiceSettings, change: Partial<VoiceSettings>): VoiceSettings {
  const after = { ...before, ...change }
  const tts = known('tts_provider', TTS_PROVIDERS, after.tts_provider)
  const stt = known('stt_provider', STT_PROVIDERS, after.stt_provider)
  if (tts !== before.tts_provider) {
    after.tts_model = change.tts_model ?? ofProvider(TTS_MODELS, tts)[0]!.id
    after.tts_voice = change.tts_voice ?? ofProvider(VOICES, tts)[0]!.id
  }
  if (stt !== before.stt_provider) after.stt_model = change.stt_model ?? ofProvider(STT_MODELS, stt)[0]!.id
  known('tts_model', ofProvider(TTS_MODELS, tts), after.tts_model)
  known('stt_model', ofProvider(STT_MODELS, stt), after.stt_model)
  const voices = ofProvider(VOICES, tts).filter(({ models }) => models.includes(after.tts_model))
  known('tts_voice', voices, after.tts_voice)
  return after
}

function known(field: string, all: readonly { readonly id: string }[], id: string): string {
  if (all.some((one) => one.id === id)) return id
  throw fail('voice.unknown', { field, id, known: all.map((one) => one.id).join(', ') })
}
