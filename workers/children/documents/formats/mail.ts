import PostalMime, { type Address, type Attachment as Part } from 'postal-mime'
import { Unreadable } from '../images.ts'
import { htmlText } from './epub.ts'
import { Pages, type Texts, textsOf } from './texts.ts'

/** Opens mail in transport format (RFC 5322, MIME). The only importer of `postal-mime`. */

/** A file attached to a mail. */
export interface Attachment {
  readonly name: string
  /** Media type that the mail declares for this file. */
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** The text and the attachments of a mail. */
export interface Mail extends Texts {
  readonly attachments: readonly Attachment[]
}

/** Content of a mail, independent of its file format. */
export interface MailParts {
  readonly headers: readonly (readonly [name: string, value: string | undefined])[]
  readonly body: string
  readonly attachments: readonly Attachment[]
}

// No real mail has more attachments.
const MAX_ATTACHMENTS = 1000

/** Opens a mail. @throws Unreadable. */
export async function openMail(bytes: Uint8Array): Promise<Mail> {
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: 'arraybuffer' }).catch((cause) => {
    throw new Unreadable('The mail is damaged', { cause })
  })
  return mailOf({
    headers: [
      ['Subject', mail.subject],
      ['From', addresses(mail.from && [mail.from])],
      ['To', addresses(mail.to)],
      ['Cc', addresses(mail.cc)],
      ['Date', mail.date],
    ],
    body: mail.text?.trim() ? mail.text : htmlText(mail.html ?? ''),
    attachments: mail.attachments.filter((part) => !isShown(part, mail.html ?? '')).map(attachmentOf),
  })
}

/** Formats a mail as one page. Drops attachments beyond `MAX_ATTACHMENTS`. */
export function mailOf({ headers, body, attachments }: MailParts): Mail {
  const pages = new Pages()
  for (const [name, value] of headers) if (value) pages.add(`${name}: ${value.replace(/\s+/g, ' ')}\n`)
  pages.add(`\n${body.replace(/\r\n?/g, '\n')}\n`)
  const kept = attachments.slice(0, MAX_ATTACHMENTS)
  if (kept.length > 0) pages.add('\nAttachments:\n')
  for (const { name, bytes } of kept) pages.add(`${name} (${bytes.length} bytes)\n`)
  return { ...textsOf([pages.end().join('\n')]), attachments: kept }
}

const addresses = (all: readonly Address[] | undefined): string | undefined =>
  all
    ?.flatMap((one) => one.group ?? [one])
    .map(({ name, address }) => (name && address ? `${name} <${address}>` : name || address))
    .join(', ')

// True for icons and logos that the body shows. Apple Mail marks every picture as inline, even an attached photo, so
// the body must also reference the picture.
const isShown = ({ related, disposition, mimeType, contentId = '' }: Part, html: string): boolean =>
  mimeType.startsWith('image/') &&
  (related === true ||
    (disposition === 'inline' && contentId !== '' && html.includes(`cid:${contentId.replace(/^<|>$/g, '')}`)))

function attachmentOf({ filename, mimeType, content }: Part, n: number): Attachment {
  const bytes = typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)
  return { name: filename || `Attachment ${n + 1}`, mediaType: mimeType, bytes }
}
