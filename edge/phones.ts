import { createRequire } from 'node:module'
import { z } from 'zod'

const require = createRequire(import.meta.url)
// Loaded on first use: its tables take 90 ms of CPU, and few processes ever see a number.
const phones = () => require('libphonenumber-js') as typeof import('libphonenumber-js')

/**
 * A phone number in international form, normalised to E.164: its country must exist, and its length must be valid
 * there. Whether it is in use is for the provider to say. The only importer of the phone number library.
 */
export const PhoneNumber = z
  .string()
  .trim()
  .max(40)
  .transform((text, context): string => {
    const number = phones().parsePhoneNumberFromString(text, { extract: false })
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
