import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import {
  filterByProvider,
  STT_MODELS,
  STT_PROVIDERS,
  TTS_MODELS,
  TTS_PROVIDERS,
  VOICES,
  type VoiceProvider,
} from '../../../tasks/voice/catalog.ts'
import { route } from '../../pipeline/route.ts'
import { readVoiceSettings } from './settings.ts'
import { Model, Providers, ProvidersSummary, Voice } from './shapes.ts'

const params = z.object({ provider_id: z.string() })

/** Routes for the providers of speech synthesis and recognition. */
export const voiceCatalogRoutes = [
  route({
    method: 'get',
    path: '/catalog/tts/providers',
    summary: 'List speech synthesis providers',
    response: Providers,
    handle: ({ edge }) => TTS_PROVIDERS.map(addKeyState(edge.settings)),
  }),

  route({
    method: 'get',
    path: '/catalog/tts/:provider_id/models',
    summary: 'List the speech synthesis models of a provider',
    params,
    response: z.array(Model),
    errors: ['voice.provider_missing'],
    handle: ({ params }) => filterByProvider(TTS_MODELS, requireProvider(TTS_PROVIDERS, params.provider_id)),
  }),

  route({
    method: 'get',
    path: '/catalog/tts/:provider_id/voices',
    summary: 'List the voices of a provider',
    params,
    response: z.array(Voice),
    errors: ['voice.provider_missing'],
    handle: ({ params }) => listVoices(requireProvider(TTS_PROVIDERS, params.provider_id)),
  }),

  route({
    method: 'get',
    path: '/catalog/stt/providers',
    summary: 'List speech recognition providers',
    response: Providers,
    handle: ({ edge }) => STT_PROVIDERS.map(addKeyState(edge.settings)),
  }),

  route({
    method: 'get',
    path: '/catalog/stt/:provider_id/models',
    summary: 'List the speech recognition models of a provider',
    params,
    response: z.array(Model),
    errors: ['voice.provider_missing'],
    handle: ({ params }) => filterByProvider(STT_MODELS, requireProvider(STT_PROVIDERS, params.provider_id)),
  }),

  route({
    method: 'get',
    path: '/catalog/summary',
    summary: 'Get the full catalog and the voice settings',
    response: ProvidersSummary,
    handle: async ({ edge }) => ({
      tts: {
        providers: TTS_PROVIDERS.map(addKeyState(edge.settings)).map((provider) => ({
          ...provider,
          models: filterByProvider(TTS_MODELS, provider.id),
          voices: listVoices(provider.id),
        })),
      },
      stt: {
        providers: STT_PROVIDERS.map(addKeyState(edge.settings)).map((provider) => ({
          ...provider,
          models: filterByProvider(STT_MODELS, provider.id),
        })),
      },
      settings: await readVoiceSettings(edge.db),
    }),
  }),
]

const addKeyState =
  ({ ai }: Settings) =>
  (provider: VoiceProvider) => ({ ...provider, configured: ai.endpoints[provider.id].apiKey !== null })

const listVoices = (id: string) =>
  filterByProvider(VOICES, id).map(({ models, ...voice }) => ({ ...voice, models: [...models] }))

function requireProvider(providers: readonly VoiceProvider[], id: string): string {
  if (providers.some((one) => one.id === id)) return id
  throw fail('voice.provider_missing')
}
