import type { Providers } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/settings.ts'
import { createMailer } from './email.ts'
import { openPages } from './pages.ts'

/** The real outside, as the settings want it. */
export function createProviders(settings: Settings): Providers {
  const mailer = createMailer(settings)
  return {
    sendEmail: (message, signal) => mailer.send(message, signal),
    openPages: (bytes, mediaType, signal) =>
      openPages(bytes, mediaType, { vision: settings.visionProvider, signal }),
  }
}
