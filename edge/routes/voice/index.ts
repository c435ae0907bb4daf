import { area } from '../../pipeline/route.ts'
import { voiceCatalogRoutes } from './catalog.ts'
import { previewRoutes } from './previews.ts'
import { voiceSettingsRoutes } from './settings.ts'
import { speechRoutes } from './speeches.ts'
import { transcriptionRoutes } from './transcriptions.ts'

export const voice = area(
  'voice',
  '/voice',
  {
    auth: 'open',
  },
  [...voiceCatalogRoutes, ...voiceSettingsRoutes, ...previewRoutes, ...speechRoutes, ...transcriptionRoutes],
)
