import { z } from 'zod'
import type { Send } from '../../sql/comms/sends.ts'
import type { TaskContext } from '../context.ts'
import { findAttachableDocuments } from './attach.ts'
import { addressOf, Mailbox } from './mailbox.ts'
import type { EmailAttachment, EmailMessage } from './ports.ts'
import { describeUnknown, sendOnce } from './send.ts'
import { rejectSuppressedAddresses } from './suppression.ts'
import { buildUnsubscribeHeaders } from './unsubscribe.ts'

interface EmailResult {
  readonly id: string
  readonly to: string[]
  readonly status: 'sent' | 'unknown' | 'scheduled'
  readonly message: string
}

/** The email's details in the ledger. */
const EmailContent = z.strictObject({
  to: z.array(Mailbox).min(1),
  cc: z.array(Mailbox).default([]),
  bcc: z.array(Mailbox).default([]),
  reply_to: Mailbox.optional(),
  from_email: Mailbox.optional(),
  subject: z.string(),
  text: z.string().optional(),
  html: z.string().optional(),
  headers: z.record(z.string(), z.string()).default({}),
  unsubscribe: z.boolean().default(false),
})

/** Runs `comms.email`. */
export async function run(ctx: TaskContext, { send_id }: { readonly send_id: string }): Promise<EmailResult> {
  const { comms } = ctx.providers
  const send = await sendOnce(ctx, send_id, (row) => ({
    channel: 'email',
    isIdempotent: comms.isEmailIdempotent,
    failureCode: 'email.failed',
    retryMs: ctx.settings.email.retryMs,
    submit: async (request) => {
      const message = buildMessage(ctx, row)
      await comms.checkSender(addressOf(message.from ?? ctx.settings.email.from), request.signal)
      const pending = row.deliveries.flatMap(({ address, status }) => (status === undefined ? [address] : []))
      await rejectSuppressedAddresses(ctx.db, pending, row.stream)
      const limit = pending.length < row.deliveries.length ? { pending } : {}
      return comms.email({ ...message, ...limit, attachments: await loadAttachments(ctx, row) }, request)
    },
  }))
  if (send.status === 'unknown')
    return { id: send.id, to: send.recipients, status: 'unknown', message: describeUnknown(send) }
  const message = send.detail ?? 'The mail server accepted the message'
  return { id: send.id, to: send.recipients, status: 'sent', message }
}

/**
 * Loads the current state of the documents to attach. The mailer later streams their bytes.
 *
 * @throws the errors of {@link findAttachableDocuments}
 */
async function loadAttachments(
  { db, blobs, settings }: TaskContext,
  { attachments, owner_id: owner }: Send,
): Promise<readonly EmailAttachment[]> {
  const ids = attachments.map(({ document_id }) => document_id)
  const documents = await findAttachableDocuments(db, ids, owner, settings.email.attachmentsMaxBytes)
  return documents.map((document, index) => ({
    filename: attachments[index]!.filename,
    mediaType: document.media_type,
    byteSize: document.byte_size,
    read: () => blobs.read(document, 0, document.byte_size),
  }))
}

/**
 * Builds the message of a send, the same in every attempt. The Message-ID derives from the id of the send, and the date
 * is its due time.
 */
function buildMessage({ settings, keys }: TaskContext, send: Send): EmailMessage {
  const { to, cc, bcc, reply_to, from_email, subject, text, html, headers, unsubscribe } = EmailContent.parse(
    send.message,
  )
  const subscription = { sendId: send.id, stream: send.stream, address: addressOf(to[0]!) }
  return {
    id: send.id,
    dateMs: send.due_ms,
    to,
    cc,
    bcc,
    subject,
    headers: {
      ...headers,
      ...(unsubscribe ? buildUnsubscribeHeaders(settings.publicBaseUrl, keys, subscription) : {}),
    },
    ...(reply_to === undefined ? {} : { replyTo: reply_to }),
    ...(from_email === undefined ? {} : { from: from_email }),
    ...(text === undefined ? {} : { text }),
    ...(html === undefined ? {} : { html }),
  }
}
