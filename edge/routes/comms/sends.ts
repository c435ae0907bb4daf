import type { z } from 'zod'
import type { SendAttachment } from '../../../sql/comms/sends.ts'
import { fail } from '../../../sql/errors.ts'
import { findAttachableDocuments, toSendAttachment } from '../../../tasks/comms/attach.ts'
import { CallResult, placeCall } from '../../../tasks/comms/call.task.ts'
import { EmailResult, sendEmail } from '../../../tasks/comms/email.task.ts'
import { addressOf } from '../../../tasks/comms/mailbox.ts'
import { countSegments } from '../../../tasks/comms/segments.ts'
import { findMissingEmailSettings, findMissingTelephonySettings } from '../../../tasks/comms/settings.ts'
import { SmsResult, sendSms } from '../../../tasks/comms/sms.task.ts'
import { rejectOptedOutNumber, rejectSuppressedAddresses } from '../../../tasks/comms/suppression.ts'
import type { RenderedMessage } from '../../../tasks/comms/template.ts'
import { requireOwner } from '../../pipeline/access/auth.ts'
import { requireScope } from '../../pipeline/access/scopes.ts'
import { route } from '../../pipeline/route.ts'
import { renderForChannel } from './rendering.ts'
import { enqueueSend, type SendInput } from './sending.ts'
import { CallRequest, EmailRequest, hasUnsubscribeLink, MAX_DAYS_AHEAD, SmsRequest } from './shapes.ts'

const ONCE_DESCRIPTION = `A message that the provider accepted is never sent twice, even if a worker dies meanwhile. If it is unclear \
whether the provider accepted a request, the status is \`unknown\` and the request is not repeated. The message is looked \
up later if the provider has a list; \`GET /api/v1/comms/sends?status=unknown\` shows the others, for a person to decide.`

const SCHEDULING_DESCRIPTION = `With \`send_at\`, at most ${MAX_DAYS_AHEAD} days ahead, the message is sent at that time. Until then its \
status is \`scheduled\`, and \`DELETE /api/v1/comms/sends/{id}\` cancels it.`

const TELEPHONY_ERRORS = ['telephony.not_configured', 'telephony.refused', 'telephony.failed'] as const

/** Routes that send messages. Each adds a ledger row and its job in one transaction. */
export const sendRoutes = [
  route({
    method: 'post',
    path: '/email/send',
    summary: 'Send an email',
    description: `Requires either \`subject\` with \`text\` or \`html\`, or a \`template\` with its \`variables\`. Allows at \
most 50 recipients. \`attachments\` are documents that the caller may read, up to \`EMAIL_ATTACHMENTS_MAX_BYTES\` in total; \
the message fails if one is deleted before it is sent. The Message-ID is derived from the returned id. ${ONCE_DESCRIPTION} ${SCHEDULING_DESCRIPTION}`,
    body: EmailRequest,
    response: EmailResult.meta({ id: 'EmailSent' }),
    errors: [
      'email.not_configured',
      'template.missing',
      'auth.required',
      'auth.scope',
      'email.attachments_missing',
      'email.attachments_too_large',
      'document.bytes_missing',
      'document.store_failed',
      'email.suppressed',
      'email.sender_unverified',
      'email.refused',
      'email.failed',
    ],
    sideEffect: true,
    job: async ({ body, ...input }) => {
      if (findMissingEmailSettings(input.edge.settings.email).length > 0) throw fail('email.not_configured')
      const addresses = [...body.to, ...body.cc, ...body.bcc].map(addressOf)
      await rejectSuppressedAddresses(input.tx, addresses, body.stream)
      const {
        send_at: sendAt,
        template,
        variables,
        subject,
        text,
        html,
        attachments,
        stream,
        unsubscribe,
        ...envelope
      } = body
      const attached = await loadAttachments(input, attachments)
      const content =
        template === undefined
          ? { subject, text, html }
          : dropAbsentParts(await renderForChannel(input.tx, 'email', { template, variables }))
      const to = envelope.to.map(addressOf)
      return enqueueSend(input, {
        channel: 'email',
        task: sendEmail,
        payload: {},
        to,
        message: { ...envelope, ...content, unsubscribe: hasUnsubscribeLink({ stream, unsubscribe }) },
        sendAt,
        template,
        attachments: attached,
        addresses,
        stream,
        buildScheduledAnswer: (answer) => ({ ...answer, to }),
      })
    },
  }),

  route({
    method: 'post',
    path: '/sms/send',
    summary: 'Send a text message',
    description: `\`segments\` is the number of parts. A single part holds 160 characters of the GSM alphabet, or 70 of \
any other; each of several parts holds 153 or 67. ${ONCE_DESCRIPTION} ${SCHEDULING_DESCRIPTION}`,
    body: SmsRequest,
    response: SmsResult.meta({ id: 'SmsSent' }),
    errors: ['template.missing', 'telephony.suppressed', ...TELEPHONY_ERRORS],
    sideEffect: true,
    job: async ({ body, ...input }) => {
      const { telephony } = input.edge.settings
      if (findMissingTelephonySettings(telephony, body.from ?? telephony.smsFrom).length > 0)
        throw fail('telephony.not_configured')
      const { send_at: sendAt, template, variables, to, from } = body
      await rejectOptedOutNumber(input.tx, to)
      const text =
        template === undefined
          ? body.body!
          : (await renderForChannel(input.tx, 'sms', { template, variables })).text!
      const payload = { to, segments: countSegments(text).count }
      return enqueueSend(input, {
        channel: 'sms',
        task: sendSms,
        payload,
        to: [to],
        message: { to, from, body: text },
        sendAt,
        template,
        buildScheduledAnswer: (answer) => ({ ...answer, ...payload, sid: null }),
      })
    },
  }),

  route({
    method: 'post',
    path: '/call',
    summary: 'Start a call',
    description: `Rings for \`timeout\` seconds. Once the call is answered, the provider fetches its script (TwiML) from \
\`script_url\`. ${ONCE_DESCRIPTION} ${SCHEDULING_DESCRIPTION}`,
    body: CallRequest,
    response: CallResult.meta({ id: 'CallStarted' }),
    errors: TELEPHONY_ERRORS,
    sideEffect: true,
    job: async ({ body, ...input }) => {
      const { telephony } = input.edge.settings
      if (findMissingTelephonySettings(telephony, telephony.phoneNumber).length > 0)
        throw fail('telephony.not_configured')
      const { send_at: sendAt, ...message } = body
      const payload = { to: message.to }
      return enqueueSend(input, {
        channel: 'call',
        task: placeCall,
        payload,
        to: [message.to],
        message,
        sendAt,
        template: undefined,
        buildScheduledAnswer: (answer) => ({ ...answer, ...payload, sid: null }),
      })
    },
  }),
]

/** Loads the attachments of an email. @throws auth.required, auth.scope, and the errors of {@link findAttachableDocuments}. */
async function loadAttachments(
  { edge, caller, tx }: SendInput,
  asked: z.output<typeof EmailRequest>['attachments'],
): Promise<readonly SendAttachment[]> {
  if (asked.length === 0) return []
  requireOwner(caller)
  requireScope(caller, 'documents', 'read')
  const ids = asked.map(({ document_id }) => document_id)
  const documents = await findAttachableDocuments(
    tx,
    ids,
    caller.ownerId,
    edge.settings.email.attachmentsMaxBytes,
  )
  return documents.map((document, n) => toSendAttachment(document, asked[n]!.filename))
}

/** Drops the parts that a template does not have. */
const dropAbsentParts = (rendered: RenderedMessage) =>
  Object.fromEntries(Object.entries(rendered).filter(([, text]) => text !== null))
