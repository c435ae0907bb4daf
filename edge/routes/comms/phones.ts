import { createRequire } from 'node:module'
import { z } from 'zod'
import { NAMED_SENDER_PATTERN } from '../../../tasks/comms/sender.ts'

const require = createRequire(import.meta.url)
// Loads the library on first use, because its tables take 90 ms of CPU and few processes parse a number.
const loadLibrary = () => require('libphonenumber-js') as typeof import('libphonenumber-js')

/**
 * An international phone number, normalised to E.164. The country must exist and the length must be valid there, but
 * only the provider knows if the number is in use. No other module imports the phone number library.
 */
export const PhoneNumber = z
  .string()
  .trim()
  .max(40)
  .transform((text, context): string => {
    const number = loadLibrary().parsePhoneNumberFromString(text, { extract: false })
    if (number === undefined || !number.isPossible() || number.ext !== undefined) {
      context.addIssue({
        code: 'custom',
        message: 'must be a phone number in E.164 form such as +14155552671',
        input: text,
      })
      return z.NEVER
    }
    return number.number
  })
  .meta({ type: 'string', format: 'phone', examples: ['+14155552671'] })

/** Sender of a text message: a phone number, a short code, an alphanumeric sender, or a messaging service of Twilio. */
export const SmsSender = z
  .union([z.string().trim().regex(NAMED_SENDER_PATTERN), PhoneNumber], {
    error:
      'must be a phone number, a short code, 1 to 11 letters, digits and spaces with a letter, or the id of a messaging service',
  })
  .meta({ type: 'string', examples: ['Millrace'] })
