import type { Comms } from '../../../tasks/comms/ports.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { createDomains } from './domains.ts'
import type { Mailer } from './email.ts'
import { createTelephony } from './telephony.ts'

/** Creates the configured channels: email, text messages, calls and sender domains. */
export function createComms(
  settings: Pick<Settings, 'email' | 'telephony' | 'publicBaseUrl'>,
  mailer: Mailer,
): Comms {
  return {
    isEmailIdempotent: mailer.isIdempotent,
    email: mailer.send,
    ...createTelephony(settings),
    ...createDomains(settings.email),
  }
}
