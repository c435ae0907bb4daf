import type { Comms } from '../../../tasks/comms/ports.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { StartLimits } from '../start-limit.ts'
import { createDomains } from './domains.ts'
import type { Mailer } from './email.ts'
import { createTelephony } from './telephony.ts'

/** Creates the configured channels: email, text messages, calls and sender domains. */
export function createComms(
  settings: Pick<Settings, 'email' | 'telephony' | 'publicBaseUrl'>,
  mailer: Mailer,
  { sms }: Pick<StartLimits, 'sms'>,
): Comms {
  return {
    isEmailIdempotent: mailer.isIdempotent,
    email: mailer.send,
    ...createTelephony(settings, undefined, sms),
    ...createDomains(settings.email),
  }
}
