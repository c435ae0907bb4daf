import { area } from '../pipeline/route.ts'
import { voiceCatalogRoutes } from './voice/catalog.ts'
import { previewRoutes } from './voice/previews.ts'
import { voiceSettingsRoutes } from './voice/settings.ts'
import { transcriptionRoutes } from './voice/transcriptions.ts'

export const voice = area(
  'voice',
  '/voice',
  {
    auth: 'open',
  },
  [...voiceCatalogRoutes, ...voiceSettingsRoutes, ...previewRoutes, ...transcriptionRoutes],
)
