import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { z } from 'zod'

/**
 * A phone number in international form, normalised to E.164: of a country that there is, and of a length that numbers
 * have there. Whether somebody has it is for the provider to say. The only importer of the phone number library.
 */
export const PhoneNumber = z
  .string()
  .trim()
  .max(40)
  .transform((text, context): string => {
    const number = parsePhoneNumberFromString(text, { extract: false })
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
