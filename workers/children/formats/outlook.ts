import MsgReader from '@kenjiuno/msgreader'
import { Unreadable } from '../images/images.ts'
import { extractHtmlText } from './epub.ts'
import { type Attachment, formatMail, type Mail } from './mail.ts'
import { openHtml } from './markup.ts'

/** Opens mail in Outlook's file format (MS-OXMSG). The only importer of `@kenjiuno/msgreader`. */

/** Opens a mail. @throws Unreadable. */
export async function openOutlook(bytes: Uint8Array): Promise<Mail> {
  const reader = new MsgReader.default(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const mail = readOrThrow(() => reader.getFileData())
  if (mail.error !== undefined || mail.messageClass === undefined) throw new Unreadable('The mail is damaged')
  const recipients = (type: string): string =>
    (mail.recipients ?? [])
      .filter(({ recipType = 'to' }) => recipType === type)
      .map(({ name, smtpAddress, email }) => formatPerson(name, smtpAddress ?? email))
      .join(', ')
  const readHtmlBody = async (): Promise<string> =>
    mail.html ? openHtml(mail.html, { encoding: null }).text(1) : extractHtmlText(mail.bodyHtml ?? '')
  return formatMail({
    headers: [
      ['Subject', mail.subject],
      ['From', formatPerson(mail.senderName, mail.senderSmtpAddress ?? mail.senderEmail)],
      ['To', recipients('to')],
      ['Cc', recipients('cc')],
      ['Date', mail.messageDeliveryTime ?? mail.clientSubmitTime ?? mail.creationTime],
    ],
    body: mail.body?.trim() ? mail.body : await readHtmlBody(),
    attachments: (mail.attachments ?? [])
      // Hidden attachments are pictures that the body shows.
      .filter(({ attachmentHidden }) => attachmentHidden !== true)
      .map((field): Attachment => {
        const { fileName, content } = readOrThrow(() => reader.getAttachment(field))
        return {
          name: fileName,
          mediaType: field.attachMimeTag ?? 'application/octet-stream',
          bytes: content,
        }
      }),
  })
}

const formatPerson = (name = '', address = ''): string =>
  name !== '' && address !== '' && name !== address ? `${name} <${address}>` : name || address

function readOrThrow<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw new Unreadable('The mail is damaged', { cause })
  }
}
