import { z } from 'zod'
import { SEND_ID_HEADER } from './callback.ts'
import { SINGLE_LINE_PATTERN, SINGLE_LINE_RULE } from './template.ts'

/** Headers that a caller adds to an email. */

const MAX_HEADERS = 20
// With its name, the longest value still fits into a line of 998 characters (RFC 5322, section 2.1.1).
const MAX_VALUE_LENGTH = 900

// Headers that neither address the message nor identify or describe it to mail servers.
const NAME_PATTERN =
  /^(x-[a-z\d-]{1,62}|list-[a-z-]{1,59}|references|in-reply-to|precedence|importance|priority|sensitivity|feedback-id|keywords|comments|organization|archived-at)$/i
// The id of the send, and headers by which relays add recipients.
const RESERVED_PATTERN = new RegExp(`^(${SEND_ID_HEADER}|x-smtpapi|x-mc-.*)$`, 'i')

const Name = z
  .string()
  .regex(
    NAME_PATTERN,
    'must be X-…, List-…, References, In-Reply-To, Precedence, Importance, Priority, Sensitivity, Feedback-ID, Keywords, Comments, Organization or Archived-At',
  )
  .refine((name) => !RESERVED_PATTERN.test(name), 'is reserved')

const Value = z
  .string()
  .min(1)
  .max(MAX_VALUE_LENGTH)
  .regex(SINGLE_LINE_PATTERN, SINGLE_LINE_RULE)
  .regex(/\S/, 'must not be blank')

export const EmailHeaders = z
  .record(Name, Value)
  .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, `must have at most ${MAX_HEADERS} headers`)
  .refine((headers) => {
    const names = Object.keys(headers).map((name) => name.toLowerCase())
    return new Set(names).size === names.length
  }, 'must name each header once')
