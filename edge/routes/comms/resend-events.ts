import { z } from 'zod'
import type { SendEvent } from '../../../sql/comms.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { SEND_ID_HEADER } from '../../../tasks/comms/callback.ts'

/**
 * What Resend tells of mail (https://resend.com/docs/webhooks/event-types). Each event is about one recipient
 * (https://resend.com/changelog/webhook-event-visibility), so that a mail to several has several.
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
  /** Whether mail to the recipient will not arrive, or is not wanted, ever again. */
  readonly isFinal?: boolean
}

const CHANGES: Readonly<Record<string, (data: Data) => Change>> = {
  'email.sent': () => ({ status: 'sent', errorCode: null, detail: null }),
  'email.delivered': () => ({ status: 'delivered', errorCode: null, detail: null }),
  'email.bounced': ({ to, bounce }) => {
    const kind = [bounce?.type, bounce?.subType].filter(isWord).join(', ')
    const detail = `The mail server of ${to.join(', ')} refused it${kind === '' ? '' : ` (${kind})`}`
    return { status: 'bounced', errorCode: null, detail, isFinal: bounce?.type === 'Permanent' }
  },
  'email.suppressed': ({ to }) => ({
    status: 'bounced',
    errorCode: null,
    detail: `The email provider no longer sends to ${to.join(', ')}`,
    isFinal: true,
  }),
  'email.complained': ({ to }) => ({
    status: 'complained',
    errorCode: null,
    detail: `${to.join(', ')} marked it as spam`,
    isFinal: true,
  }),
  'email.failed': ({ failed }) => {
    const reason = isWord(failed?.reason) ? failed.reason : 'it gives no reason'
    const { code, detail } = fail('email.undelivered', { reason })
    return { status: 'failed', errorCode: code, detail }
  },
}

/** What an event says about mail; null: nothing that moves one on. @throws fail('send.event_invalid') */
export function resendEvent(eventId: string, { type, data }: ResendEvent): SendEvent | null {
  const changeOf = Object.hasOwn(CHANGES, type) ? CHANGES[type]! : null
  if (changeOf === null) return null
  const given = Data.safeParse(data)
  if (!given.success) throw fail('send.event_invalid', {}, { cause: given.error })
  const { isFinal = false, ...rest } = changeOf(given.data)
  const [address, ...others] = given.data.to
  return {
    channel: 'email',
    providerId: given.data.email_id,
    sendId: sendIdOf(given.data),
    providerStatus: type.slice('email.'.length),
    ...rest,
    // Of several, nobody would know whose it is.
    ...(isFinal && address !== undefined && others.length === 0 ? { suppresses: { address, eventId } } : {}),
  }
}

/**
 * The id of the send. The relay's answer does not tell the provider's, so the first event ties the two. Ours is in a custom header,
 * and in the Message-ID unless Amazon's servers, through which the provider sends, have given the message one of their own
 * (https://docs.aws.amazon.com/ses/latest/dg/header-fields.html).
 */
function sendIdOf({ message_id = '', headers = [] }: Data): string | null {
  const named = (wanted: string): string[] =>
    headers.filter(({ name }) => name.toLowerCase() === wanted).map(({ value }) => value)
  for (const text of [...named(SEND_ID_HEADER), message_id, ...named('message-id')]) {
    const id = /^<?([\da-f-]{36})(@[^\s@]+>?)?$/i.exec(text.trim())?.[1]
    if (id !== undefined && isUuid(id)) return id
  }
  return null
}

/** Whether a reason is a term of the provider's. Its sentences may hold addresses and account names. */
function isWord(text: string | undefined): text is string {
  return text !== undefined && /^\w{1,60}$/.test(text)
}
