import { fail } from '../../sql/errors.ts'
import type { VoiceSettings } from '../../sql/voice/previews.ts'
import { filterByProvider, STT_MODELS, STT_PROVIDERS, TTS_MODELS, TTS_PROVIDERS, VOICES } from './catalog.ts'

/** Default voice settings and their validation against the catalog. */

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
 * Applies a change to settings. A change of the provider alone selects its first model and voice in the catalog.
 * @throws fail('voice.unknown') if a value or the combination is unknown.
 */
export function applyChange(before: VoiceSettings, change: Partial<VoiceSettings>): VoiceSettings {
  const after = { ...before, ...change }
  const tts = requireKnown('tts_provider', TTS_PROVIDERS, after.tts_provider)
  const stt = requireKnown('stt_provider', STT_PROVIDERS, after.stt_provider)
  if (tts !== before.tts_provider) {
    after.tts_model = change.tts_model ?? filterByProvider(TTS_MODELS, tts)[0]!.id
    after.tts_voice = change.tts_voice ?? filterByProvider(VOICES, tts)[0]!.id
  }
  if (stt !== before.stt_provider)
    after.stt_model = change.stt_model ?? filterByProvider(STT_MODELS, stt)[0]!.id
  requireKnown('tts_model', filterByProvider(TTS_MODELS, tts), after.tts_model)
  requireKnown('stt_model', filterByProvider(STT_MODELS, stt), after.stt_model)
  const voices = filterByProvider(VOICES, tts).filter(({ models }) => models.includes(after.tts_model))
  requireKnown('tts_voice', voices, after.tts_voice)
  return after
}

function requireKnown(field: string, all: readonly { readonly id: string }[], id: string): string {
  if (all.some((one) => one.id === id)) return id
  throw fail('voice.unknown', { field, id, known: all.map((one) => one.id).join(', ') })
}
