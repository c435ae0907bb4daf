import { z } from 'zod'

/**
 * Mailboxes of emails: an address, or an address with a display name. Only the mailer encodes display names, so that
 * they cannot add headers or recipients.
 */

/** A mailbox as messages store it: a bare address, or a name with an address. */
export const Mailbox = z.union([z.string(), z.strictObject({ name: z.string(), address: z.string() })])
export type Mailbox = z.output<typeof Mailbox>

export const addressOf = (mailbox: Mailbox): string =>
  typeof mailbox === 'string' ? mailbox : mailbox.address

// The longest address has 320 characters; quotes and backslashes may double a name.
const MAX_NAME_LENGTH = 256
const MAX_LENGTH = 2 * MAX_NAME_LENGTH + 330

// `"Name" <address>`, or `Name <address>` if the name has no special characters (RFC 5322, section 3.4).
const NAMED_PATTERN = /^(?:"((?:[^"\\\p{Cc}]|\\\P{Cc})*)"|([^"\\\p{Cc}()<>[\]:;@,]*))\s*<([^<>]*)>$/u

/** Returns the schema of a text with a mailbox, whose address must match `address`. */
export const buildMailboxSchema = (address: z.ZodType<string, string>) =>
  z
    .string()
    .trim()
    .max(MAX_LENGTH)
    .transform((text, context): Mailbox => {
      const [, quoted, plain, inBrackets] = NAMED_PATTERN.exec(text) ?? []
      const name = (quoted?.replace(/\\(.)/gu, '$1') ?? plain ?? '').trim()
      const parsed = address.safeParse(inBrackets?.trim() ?? text)
      const problem = parsed.success ? null : parsed.error.issues[0]!.message
      if (problem === null && name.length <= MAX_NAME_LENGTH)
        return name === '' ? parsed.data! : { name, address: parsed.data! }
      const message = problem ?? `the name must have at most ${MAX_NAME_LENGTH} characters`
      context.addIssue({ code: 'custom', message, input: text })
      return z.NEVER
    })
