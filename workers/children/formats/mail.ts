import PostalMime, { type Address, type Attachment as Part } from 'postal-mime'
import { Unreadable } from '../images/images.ts'
import { extractHtmlText } from './epub.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/** Opens mail in transport format (RFC 5322, MIME). The only importer of `postal-mime`. */

/** A file attached to a mail. */
export interface Attachment {
  readonly name: string
  /** Media type that the mail declares for this file. */
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** The text and the attachments of a mail. */
export interface Mail extends PagedText {
  readonly attachments: readonly Attachment[]
}

/** Content of a mail, independent of its file format. */
export interface MailParts {
  readonly headers: readonly (readonly [name: string, value: string | undefined])[]
  readonly body: string
  readonly attachments: readonly Attachment[]
}

// Limit of attachments, above the number in any real mail.
const MAX_ATTACHMENTS = 1000

/** Opens a mail. @throws Unreadable. */
export async function openMail(bytes: Uint8Array): Promise<Mail> {
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: 'arraybuffer' }).catch((cause) => {
    throw new Unreadable('The mail is damaged', { cause })
  })
  return formatMail({
    headers: [
      ['Subject', mail.subject],
      ['From', formatAddresses(mail.from && [mail.from])],
      ['To', formatAddresses(mail.to)],
      ['Cc', formatAddresses(mail.cc)],
      ['Date', mail.date],
    ],
    body: mail.text?.trim() ? mail.text : extractHtmlText(mail.html ?? ''),
    attachments: mail.attachments.filter((part) => !isShownInBody(part, mail.html ?? '')).map(toAttachment),
  })
}

/** Formats a mail as one page. Drops attachments beyond `MAX_ATTACHMENTS`. */
export function formatMail({ headers, body, attachments }: MailParts): Mail {
  const pages = new PageCollector()
  for (const [name, value] of headers) if (value) pages.add(`${name}: ${value.replace(/\s+/g, ' ')}\n`)
  pages.add(`\n${body.replace(/\r\n?/g, '\n')}\n`)
  const kept = attachments.slice(0, MAX_ATTACHMENTS)
  if (kept.length > 0) pages.add('\nAttachments:\n')
  for (const { name, bytes } of kept) pages.add(`${name} (${bytes.length} bytes)\n`)
  return { ...createPagedText([pages.end().join('\n')]), attachments: kept }
}

const formatAddresses = (all: readonly Address[] | undefined): string | undefined =>
  all
    ?.flatMap((one) => one.group ?? [one])
    .map(({ name, address }) => (name && address ? `${name} <${address}>` : name || address))
    .join(', ')

// True if the attachment is an icon or logo that the body shows. Apple Mail marks every picture as inline, even an
// attached photo, so the body must also reference the picture.
const isShownInBody = ({ related, disposition, mimeType, contentId = '' }: Part, html: string): boolean =>
  mimeType.startsWith('image/') &&
  (related === true ||
    (disposition === 'inline' && contentId !== '' && html.includes(`cid:${contentId.replace(/^<|>$/g, '')}`)))

function toAttachment({ filename, mimeType, content }: Part, n: number): Attachment {
  const bytes = typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)
  return { name: filename || `Attachment ${n + 1}`, mediaType: mimeType, bytes }
}
