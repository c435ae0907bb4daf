import { z } from 'zod'
import { resolveEncoding } from '../formats/encodings.ts'

/** The encoding of a text: any label of the Encoding Standard or number of a code page, as a name for `charset`. */
export const Encoding = z
  .string()
  .max(40)
  .transform((label, context) => {
    const encoding = resolveEncoding(label)
    if (encoding !== null) return encoding
    context.addIssue({
      code: 'custom',
      message: 'must be an encoding such as windows-1251, shift_jis or cp850',
    })
    return z.NEVER
  })
