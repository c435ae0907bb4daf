import { z } from 'zod'
import type { Send } from '../../sql/comms.ts'
import type { TaskContext } from '../context.ts'
import { attachables } from './attach.ts'
import type { EmailResult } from './email.ts'
import type { EmailAttachment, EmailMessage } from './ports.ts'
import { sendOnce, unknownText } from './send.ts'
import { refuseSuppressed } from './suppression.ts'

/** The message of this channel as stored in the ledger. */
const Email = z.strictObject({
  to: z.array(z.string()).min(1),
  cc: z.array(z.string()).default([]),
  bcc: z.array(z.string()).default([]),
  reply_to: z.string().optional(),
  from_email: z.string().optional(),
  subject: z.string(),
  text: z.string().optional(),
  html: z.string().optional(),
})

/** The work of `comms.email`. */
export async function run(ctx: TaskContext, { send_id }: { readonly send_id: string }): Promise<EmailResult> {
  const { comms } = ctx.providers
  const send = await sendOnce(ctx, send_id, (row) => ({
    channel: 'email',
    repeatable: comms.emailRepeatable,
    failed: 'email.failed',
    hand: async (request) => {
      const message = messageOf(row)
      await comms.checkSender(message.from ?? ctx.settings.email.from, request.signal)
      await refuseSuppressed(ctx.db, [...message.to, ...(message.cc ?? []), ...(message.bcc ?? [])])
      return comms.email({ ...message, attachments: await attachmentsOf(ctx, row) }, request)
    },
  }))
  if (send.status === 'unknown')
    return { id: send.id, to: send.recipients, status: 'unknown', message: unknownText(send) }
  const message = send.detail ?? 'The mail server accepted the message'
  return { id: send.id, to: send.recipients, status: 'sent', message }
}

/** The documents as they are now, which are read while they are sent. @throws what {@link attachables} does. */
async function attachmentsOf(
  { db, blobs, settings }: TaskContext,
  { attachments, owner_id: owner }: Send,
): Promise<readonly EmailAttachment[]> {
  const ids = attachments.map(({ document_id }) => document_id)
  const documents = await attachables(db, ids, owner, settings.email.attachmentsMaxBytes)
  return documents.map((document, n) => ({
    filename: attachments[n]!.filename,
    mediaType: document.media_type,
    byteSize: document.byte_size,
    read: () => blobs.read(document, 0, document.byte_size),
  }))
}

/** Identical to the last byte in every attempt: the id makes the Message-ID, when it was to be sent is the date. */
function messageOf(send: Send): EmailMessage {
  const { to, cc, bcc, reply_to, from_email, subject, text, html } = Email.parse(send.message)
  return {
    id: send.id,
    dateMs: send.due_ms,
    to,
    cc,
    bcc,
    subject,
    ...(reply_to === undefined ? {} : { replyTo: reply_to }),
    ...(from_email === undefined ? {} : { from: from_email }),
    ...(text === undefined ? {} : { text }),
    ...(html === undefined ? {} : { html }),
  }
}
