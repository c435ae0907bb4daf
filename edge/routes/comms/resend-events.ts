import { z } from 'zod'
import type { SendEvent } from '../../../sql/comms/sends.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { SEND_ID_HEADER } from '../../../tasks/comms/callback.ts'
import { addressOf, buildMailboxSchema } from '../../../tasks/comms/mailbox.ts'
import { Address } from '../../../tasks/platform/email-address.ts'

/**
 * Converts Resend's events about emails (https://resend.com/docs/webhooks/event-types). Each event is about one
 * recipient (https://resend.com/changelog/webhook-event-visibility), so an email to several recipients has several
 * events.
 */

const Text = z.string().max(1000)

const Data = z.object({
  email_id: Text,
  message_id: Text.optional(),
  headers: z.array(z.object({ name: Text, value: z.string() })).optional(),
  to: z.array(Text),
  bounce: z.object({ type: Text.optional(), subType: Text.optional() }).optional(),
  failed: z.object({ reason: Text.optional() }).optional(),
})
type Data = z.output<typeof Data>

export const ResendEvent = z.object({ type: Text, data: z.unknown() })
export type ResendEvent = z.output<typeof ResendEvent>

interface Change extends Pick<SendEvent, 'status' | 'errorCode' | 'detail'> {
  /** True if the recipient's server rejects all mail permanently, or the recipient does not want any. */
  readonly isPermanent?: boolean
}

const CHANGES: Readonly<Record<string, (data: Data) => Change>> = {
  'email.sent': () => ({ status: 'sent', errorCode: null, detail: null }),
  'email.delivered': () => ({ status: 'delivered', errorCode: null, detail: null }),
  'email.bounced': ({ to, bounce }) => {
    const kind = [bounce?.type, bounce?.subType].filter(isSingleTerm).join(', ')
    const detail = `The mail server of ${to.join(', ')} rejected the email${kind === '' ? '' : ` (${kind})`}`
    return { status: 'bounced', errorCode: null, detail, isPermanent: bounce?.type === 'Permanent' }
  },
  'email.suppressed': ({ to }) => ({
    status: 'bounced',
    errorCode: null,
    detail: `The email provider no longer sends to ${to.join(', ')}`,
    isPermanent: true,
  }),
  'email.complained': ({ to }) => ({
    status: 'complained',
    errorCode: null,
    detail: `${to.join(', ')} marked the email as spam`,
    isPermanent: true,
  }),
  'email.failed': ({ failed }) => {
    const reason = isSingleTerm(failed?.reason) ? failed.reason : 'no reason given'
    const { code, detail } = fail('email.undelivered', { reason })
    return { status: 'failed', errorCode: code, detail }
  },
}

/** Converts an event; null if events of its type change no send. @throws fail('send.event_invalid') */
export function convertResendEvent(eventId: string, { type, data }: ResendEvent): SendEvent | null {
  const convert = Object.hasOwn(CHANGES, type) ? CHANGES[type]! : null
  if (convert === null) return null
  const parsed = Data.safeParse(data)
  if (!parsed.success) throw fail('send.event_invalid', {}, { cause: parsed.error })
  const { isPermanent = false, ...rest } = convert(parsed.data)
  const [address, ...others] = parsed.data.to
  return {
    channel: 'email',
    providerId: parsed.data.email_id,
    sendId: findSendId(parsed.data),
    providerStatus: type.slice('email.'.length),
    ...rest,
    // If there are several recipients, the event does not say which of them it is about.
    ...(isPermanent && address !== undefined && others.length === 0
      ? { suppression: { address: readAddress(address), eventId } }
      : {}),
  }
}

const RecipientMailbox = buildMailboxSchema(Address)

/** Returns the address of a recipient, who may have a display name. */
function readAddress(recipient: string): string {
  const { data } = RecipientMailbox.safeParse(recipient)
  return data === undefined ? recipient : addressOf(data)
}

/**
 * Returns this service's id of a send. The provider's relay does not return the provider's id, so the first event links
 * the two ids. This service's id is in a custom header. It is also in the Message-ID, unless Amazon SES, which the
 * provider uses, has replaced that (https://docs.aws.amazon.com/ses/latest/dg/header-fields.html).
 */
function findSendId({ message_id = '', headers = [] }: Data): string | null {
  const headersNamed = (wanted: string): string[] =>
    headers.filter(({ name }) => name.toLowerCase() === wanted).map(({ value }) => value)
  for (const text of [...headersNamed(SEND_ID_HEADER), message_id, ...headersNamed('message-id')]) {
    const id = /^<?([\da-f-]{36})(@[^\s@]+>?)?$/i.exec(text.trim())?.[1]
    if (id !== undefined && isUuid(id)) return id
  }
  return null
}

/** True if a reason is a single term. Whole sentences of the provider may contain addresses and account names. */
function isSingleTerm(text: string | undefined): text is string {
  return text !== undefined && /^\w{1,60}$/.test(text)
}
