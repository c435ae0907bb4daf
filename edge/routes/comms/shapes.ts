import { z } from 'zod'
import { CHANNELS, SEND_STATUSES } from '../../../sql/comms.ts'
import { PhoneNumber } from '../../phones.ts'
import { Moment, Timestamp } from '../../pipeline/schemas.ts'

// The provider's own limit: https://resend.com/docs/api-reference/emails/send-email
const MOST_RECIPIENTS = 50

/** A recipient's address; its case is kept, since it may matter there. */
const Address = z.string().trim().max(320).pipe(z.email())
const addresses = z.array(Address).max(MOST_RECIPIENTS)

const Line = z
  .string()
  .min(1)
  .max(998)
  .regex(/^\P{Cc}*$/u, 'must be one line without control characters')
const Text = z.string().min(1).max(1_000_000)

/** How far ahead something can be sent. */
export const MOST_DAYS_AHEAD = 30

const SendAt = Moment.optional().describe(
  `When to send it, at most ${MOST_DAYS_AHEAD} days ahead; the answer comes at once then`,
)

export const EmailRequest = z
  .strictObject({
    to: addresses.min(1),
    cc: addresses.default([]),
    bcc: addresses.default([]),
    subject: Line,
    text: Text.optional(),
    html: Text.optional(),
    reply_to: Address.optional(),
    from_email: Address.optional(),
    send_at: SendAt,
  })
  .refine(({ text, html }) => text !== undefined || html !== undefined, {
    error: 'text or html is required',
    path: ['text'],
  })
  .refine(({ to, cc, bcc }) => to.length + cc.length + bcc.length <= MOST_RECIPIENTS, {
    error: `must have at most ${MOST_RECIPIENTS} recipients in total`,
    path: ['to'],
  })
  .meta({ id: 'EmailRequest' })

export const SmsRequest = z
  .strictObject({
    to: PhoneNumber,
    body: z.string().min(1).max(1600).regex(/\S/, 'must not be blank'),
    send_at: SendAt,
  })
  .meta({ id: 'SmsRequest' })

export const CallRequest = z
  .strictObject({
    to: PhoneNumber,
    script_url: z.url({ protocol: /^https?$/ }).max(4000),
    timeout: z.int().min(5).max(600).optional(),
    send_at: SendAt,
  })
  .meta({ id: 'CallRequest' })

/** A send as it is in the ledger. */
export const Send = z
  .strictObject({
    id: z.uuid(),
    channel: z.enum(CHANNELS),
    to: z.array(z.string()),
    status: z.enum(SEND_STATUSES),
    provider_id: z.string().nullable(),
    provider_status: z.string().nullable(),
    requests: z.int(),
    detail: z.string().nullable(),
    job_id: z.uuid(),
    created_at: Timestamp,
    send_at: Timestamp.nullable().describe('When it is to be sent, if that was not at once'),
    requested_at: Timestamp.nullable(),
    settled_at: Timestamp.nullable(),
  })
  .meta({ id: 'Send' })

const Configured = z.strictObject({
  configured: z.boolean(),
  provider: z.string().nullable(),
  from: z.string().nullable(),
  /** Names of the missing settings. */
  missing: z.array(z.string()),
})

export const CommsStatus = z
  .strictObject({
    email: Configured,
    sms: Configured,
    call: Configured,
    domains: Configured,
    unknown_sends: z.int(),
  })
  .meta({ id: 'CommsStatus' })

/** A DNS name in lower case (RFC 1035, section 2.3.1), of two labels or more. */
export const DomainName = z
  .string()
  .trim()
  .toLowerCase()
  .max(253)
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/,
    'must be a domain such as mail.example.com',
  )

export const DomainRequest = z
  .strictObject({
    name: DomainName,
    region: z
      .string()
      .regex(/^[a-z]{2}-[a-z]+-\d$/, 'must be a region such as eu-west-1')
      .optional(),
  })
  .meta({ id: 'DomainRequest' })
