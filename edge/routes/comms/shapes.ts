import { z } from 'zod'
import { CHANNELS, SEND_STATUSES, SEND_STREAMS, type SendStream } from '../../../sql/comms/sends.ts'
import { MAX_ATTACHMENTS } from '../../../tasks/comms/attach.ts'
import { EmailHeaders } from '../../../tasks/comms/headers.ts'
import { buildMailboxSchema } from '../../../tasks/comms/mailbox.ts'
import {
  SINGLE_LINE_PATTERN,
  SINGLE_LINE_RULE,
  TEMPLATE_CHANNELS,
  VARIABLE_NAME_PATTERN,
  validateTemplate,
} from '../../../tasks/comms/template.ts'
import { UNSUBSCRIBE_HEADERS } from '../../../tasks/comms/unsubscribe.ts'
import { Address, normalizeDomain } from '../../../tasks/platform/email-address.ts'
import { Moment, Timestamp } from '../../pipeline/request/schemas.ts'
import { PhoneNumber, SmsSender } from './phones.ts'

// Limit of the provider: https://resend.com/docs/api-reference/emails/send-email
const MAX_RECIPIENTS = 50

const Mailbox = buildMailboxSchema(Address).meta({
  type: 'string',
  description: 'An address, or a display name with an address',
  examples: ['"Ann" <ann@example.com>'],
})
const MailboxList = z.array(Mailbox).max(MAX_RECIPIENTS)

const SingleLine = z.string().min(1).max(998).regex(SINGLE_LINE_PATTERN, SINGLE_LINE_RULE)
const Text = z.string().min(1).max(1_000_000)

/** Maximum number of days between a request and its `send_at`. */
export const MAX_DAYS_AHEAD = 30

const SendAt = Moment.optional().describe(
  `When to send it, at most ${MAX_DAYS_AHEAD} days ahead; the response does not wait for it`,
)

const TemplateName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    'must be 1 to 64 lowercase letters, digits, dots, hyphens and underscores, and begin with a letter or digit',
  )

/** Values of a template's variables. */
const Values = z.record(z.string(), z.string().max(100_000))

/** Fields of a request that uses a template instead of its own text. */
const templateUseFields = {
  template: TemplateName.optional().describe('The name of a template, in place of the text'),
  variables: Values.optional().describe('Values for the variables of the template'),
}

/** Rejects a message that has both its own text and a template, or variables without a template. */
const rejectConflictingTexts = (
  { template, variables }: { template?: string | undefined; variables?: object | undefined },
  own: Readonly<Record<string, unknown>>,
  context: z.RefinementCtx,
): void => {
  const addIssue = (name: string, message: string) =>
    context.addIssue({ code: 'custom', path: [name], message })
  if (template === undefined && variables !== undefined) addIssue('variables', 'needs a template')
  if (template === undefined) return
  for (const [name, value] of Object.entries(own))
    if (value !== undefined) addIssue(name, 'must not be given with a template')
}

const Attachment = z.strictObject({
  document_id: z.int().min(1),
  filename: z
    .string()
    .min(1)
    .max(255)
    .regex(/^[^\p{Cc}/\\]*$/u, 'must be a name without slashes and control characters')
    .optional()
    .describe('Default: the title of the document'),
})

/** True if an email gets an unsubscribe link. */
export const hasUnsubscribeLink = ({
  stream,
  unsubscribe,
}: {
  readonly stream: SendStream
  readonly unsubscribe?: boolean | undefined
}): boolean => unsubscribe ?? stream === 'broadcast'

/** Checks an email with an unsubscribe link, which names one recipient, and that a broadcast has one. */
function checkUnsubscribe(
  email: {
    readonly stream: SendStream
    readonly unsubscribe?: boolean | undefined
    readonly headers?: Readonly<Record<string, string>> | undefined
  } & Readonly<Record<'to' | 'cc' | 'bcc', readonly unknown[]>>,
  context: z.RefinementCtx,
): void {
  const { stream, unsubscribe, to, cc, bcc, headers = {} } = email
  const addIssue = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
  if (stream === 'broadcast' && unsubscribe === false)
    addIssue(['unsubscribe'], 'must be true for broadcasts')
  if (!hasUnsubscribeLink(email)) return
  if (to.length + cc.length + bcc.length !== 1)
    addIssue(['to'], 'must be the only recipient, because the unsubscribe link is personal')
  for (const name of Object.keys(headers))
    if (UNSUBSCRIBE_HEADERS.some((reserved) => reserved === name.toLowerCase()))
      addIssue(['headers', name], 'is set by the service in an email with an unsubscribe link')
}

export const EmailRequest = z
  .strictObject({
    to: MailboxList.min(1),
    cc: MailboxList.default([]),
    bcc: MailboxList.default([]),
    subject: SingleLine.optional(),
    text: Text.optional(),
    html: Text.optional(),
    reply_to: Mailbox.optional(),
    from_email: Mailbox.optional().describe('Default: `EMAIL_PROVIDER_FROM_EMAIL`'),
    headers: EmailHeaders.optional().describe('Further headers of the email, such as `References` or `X-…`'),
    attachments: z.array(Attachment).max(MAX_ATTACHMENTS).default([]).describe('Documents of the caller'),
    stream: z
      .enum(SEND_STREAMS)
      .default('transactional')
      .describe('`broadcast` for emails that recipients may refuse without losing the others'),
    unsubscribe: z
      .boolean()
      .optional()
      .describe(
        'True if the email has an unsubscribe link, and so one recipient. Broadcasts always have one',
      ),
    send_at: SendAt,
    ...templateUseFields,
  })
  .superRefine(checkUnsubscribe)
  .superRefine(({ subject, text, html, ...body }, context) =>
    rejectConflictingTexts(body, { subject, text, html }, context),
  )
  .refine(({ subject, template }) => subject !== undefined || template !== undefined, {
    error: 'is required without a template',
    path: ['subject'],
  })
  .refine(({ text, html, template }) => text !== undefined || html !== undefined || template !== undefined, {
    error: 'text or html is required, or a template',
    path: ['text'],
  })
  .refine(({ to, cc, bcc }) => to.length + cc.length + bcc.length <= MAX_RECIPIENTS, {
    error: `must have at most ${MAX_RECIPIENTS} recipients in total`,
    path: ['to'],
  })
  .meta({
    id: 'EmailRequest',
    examples: [
      {
        to: ['ann@example.com'],
        subject: 'The annual report',
        text: 'It was a good year.',
        attachments: [{ document_id: 7, filename: 'report.pdf' }],
      },
      { to: ['ann@example.com'], template: 'welcome', variables: { name: 'Ann' } },
    ],
  })

export const SmsRequest = z
  .strictObject({
    to: PhoneNumber,
    from: SmsSender.optional().describe('Default: the configured sender'),
    body: z.string().min(1).max(1600).regex(/\S/, 'must not be blank').optional(),
    send_at: SendAt,
    ...templateUseFields,
  })
  .superRefine(({ body, ...more }, context) => rejectConflictingTexts(more, { body }, context))
  .refine(({ body, template }) => body !== undefined || template !== undefined, {
    error: 'is required without a template',
    path: ['body'],
  })
  .meta({
    id: 'SmsRequest',
    examples: [
      { to: '+14155552671', body: 'It was a good year.' },
      {
        to: '+14155552671',
        template: 'reminder',
        variables: { name: 'Ann' },
        send_at: '2026-03-01T09:30:00Z',
      },
    ],
  })

export const CallRequest = z
  .strictObject({
    to: PhoneNumber,
    script_url: z.url({ protocol: /^https?$/ }).max(4000),
    timeout: z.int().min(5).max(600).optional(),
    send_at: SendAt,
  })
  .meta({ id: 'CallRequest' })

/** A send in the ledger. */
export const Send = z
  .strictObject({
    id: z.uuid(),
    channel: z.enum(CHANNELS),
    stream: z.enum(SEND_STREAMS),
    to: z.array(z.string()),
    recipients: z
      .array(
        z.strictObject({
          address: z.string(),
          status: z.enum(SEND_STATUSES),
          detail: z.string().nullable(),
        }),
      )
      .describe(
        'All recipients, also of copies. Deferred ones of an email are `queued` and tried alone later',
      ),
    status: z.enum(SEND_STATUSES),
    next_attempt_at: Timestamp.nullable().describe(
      'When a message is retried that the provider did not accept for now; `detail` has the reason',
    ),
    provider_id: z.string().nullable().describe('An email gets it with its first event'),
    provider_status: z.string().nullable().describe("The provider's own status of it"),
    requests: z.int().describe('Number of requests to the provider to send it'),
    detail: z.string().nullable(),
    job_id: z.uuid(),
    created_at: Timestamp,
    send_at: Timestamp.nullable().describe('The scheduled time; null: immediately'),
    attachments: z.array(
      z.strictObject({
        document_id: z.int(),
        filename: z.string(),
        media_type: z.string(),
        byte_size: z.int(),
      }),
    ),
    template: z.string().nullable().describe('The name of the template that it was rendered from'),
    requested_at: Timestamp.nullable().describe('Time of the last request to the provider'),
    settled_at: Timestamp.nullable().describe(
      'When it reached its `status`; null while it waits or is being sent',
    ),
  })
  .meta({ id: 'Send' })

// Limits the size of the list of templates, which includes all variables.
const MAX_VARIABLES = 50

const Variable = z.strictObject({
  name: z
    .string()
    .regex(
      VARIABLE_NAME_PATTERN,
      'must be 1 to 64 lowercase letters, digits and underscores, and begin with a letter',
    ),
  default: z.string().max(500).optional().describe('Without a default, a value is required'),
})

const templateFields = {
  channel: z.enum(TEMPLATE_CHANNELS),
  subject: SingleLine.optional(),
  text: Text.optional().describe('In a text message, its body'),
  html: Text.optional(),
  variables: z.array(Variable).max(MAX_VARIABLES).default([]),
}

export const TemplateChange = z
  .strictObject(templateFields)
  .superRefine(checkTemplate)
  .meta({
    id: 'TemplateChange',
    examples: [{ channel: 'sms', text: 'Your code is {{code}}', variables: [{ name: 'code' }] }],
  })
export const NewTemplate = z
  .strictObject({ name: TemplateName, ...templateFields })
  .superRefine(checkTemplate)
  .meta({
    id: 'NewTemplate',
    examples: [
      {
        name: 'welcome',
        channel: 'email',
        subject: 'Welcome, {{name}}',
        text: 'Hello {{name}} of {{place}}',
        variables: [{ name: 'name' }, { name: 'place', default: 'nowhere' }],
      },
    ],
  })

function checkTemplate(template: Parameters<typeof validateTemplate>[0], context: z.RefinementCtx): void {
  for (const { path, msg } of validateTemplate(template))
    context.addIssue({ code: 'custom', path: [...path], message: msg })
}

const summaryFields = {
  name: z.string(),
  channel: z.enum(TEMPLATE_CHANNELS),
  subject: z.string().nullable(),
  variables: z.array(Variable),
  created_at: Timestamp,
  updated_at: Timestamp.nullable(),
}

/** A template in the list. */
export const TemplateSummary = z.strictObject(summaryFields).meta({ id: 'TemplateSummary' })
export const Template = z
  .strictObject({ ...summaryFields, text: z.string().nullable(), html: z.string().nullable() })
  .meta({ id: 'Template' })

export const PreviewRequest = z
  .strictObject({
    variables: Values.default({}),
    contents: TemplateChange.optional().describe(
      'Unsaved contents to preview; their template need not exist',
    ),
  })
  .meta({ id: 'TemplatePreviewRequest' })
export const Preview = z
  .strictObject({
    channel: z.enum(TEMPLATE_CHANNELS),
    subject: z.string().nullable(),
    text: z.string().nullable(),
    html: z.string().nullable(),
    segments: z.int().nullable().describe('Parts of a text message; null for emails'),
  })
  .meta({ id: 'TemplatePreview' })

const ChannelConfiguration = z.strictObject({
  configured: z.boolean(),
  provider: z.string().nullable(),
  from: z.string().nullable(),
  /** Names of the missing settings. */
  missing: z.array(z.string()),
})

export const CommsStatus = z
  .strictObject({
    email: ChannelConfiguration,
    sms: ChannelConfiguration,
    call: ChannelConfiguration,
    domains: ChannelConfiguration,
    unknown_sends: z.int(),
  })
  .meta({ id: 'CommsStatus' })

/** A DNS name of two labels or more, in ASCII and lower case (RFC 1035, section 2.3.1). */
export const DomainName = z
  .string()
  .trim()
  .max(253)
  .transform((typed, context) => {
    const domain = normalizeDomain(typed)
    if (domain !== null) return domain
    context.addIssue({ code: 'custom', message: 'must be a domain such as mail.example.com' })
    return z.NEVER
  })

export const DomainRequest = z
  .strictObject({
    name: DomainName,
    region: z
      .string()
      .regex(/^[a-z]{2}-[a-z]+-\d$/, 'must be a region such as eu-west-1')
      .optional(),
  })
  .meta({ id: 'DomainRequest' })
