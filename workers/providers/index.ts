import type { Providers } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/settings.ts'
import { openPages } from './pages.ts'

/** The real outside, as the settings want it. */
export function createProviders(settings: Settings): Providers {
  return {
    openPages: (bytes, mediaType, signal) =>
      openPages(bytes, mediaType, { vision: settings.visionProvider, signal }),
  }
}
