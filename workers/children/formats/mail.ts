import { renderMarkdown } from '../markdown/render.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/** Formats mails as text, independent of their file format. */

/** A file attached to a mail. */
export interface Attachment {
  readonly name: string
  /** Media type that the mail declares for this file. */
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** The text and the attachments of a mail, or of several mails. */
export interface Mail extends PagedText {
  readonly attachments: readonly Attachment[]
}

export type Headers = readonly (readonly [name: string, value: string | undefined])[]

/** Content of a mail, independent of its file format. */
export interface MailParts {
  readonly headers: Headers
  readonly body: string
  /** The Markdown of `body`; null or absent if it has no structure. */
  readonly markdown?: string | null
  readonly attachments: readonly Attachment[]
  /** Reason why `body` lacks the content that the mail has; null if it lacks nothing. */
  readonly detail: string | null
}

export const ENCRYPTED_MAIL = 'The content of the mail is encrypted'
export const MAIL_WITHOUT_TEXT = 'The mail has content, but no text that can be read'

// Limit of attachments, above the number in any real mail.
const MAX_ATTACHMENTS = 1000

/** Drops attachments beyond `max`, and says so. */
export function limitAttachments(mail: MailParts, max = MAX_ATTACHMENTS): MailParts {
  if (mail.attachments.length <= max) return mail
  const detail = `Only the first ${max} attachments were kept`
  return { ...mail, attachments: mail.attachments.slice(0, max), detail: mail.detail ?? detail }
}

/** Creates a document of one page from a mail. */
export function createMail(mail: MailParts): Mail {
  const { detail, attachments } = limitAttachments(mail)
  return {
    ...createPagedText([formatMail({ ...mail, attachments })], undefined, undefined, [
      formatMailMarkdown({ ...mail, attachments }),
    ]),
    detail: () => detail,
    attachments,
  }
}

/** Formats a mail: headers, body and the names of its attachments. */
export function formatMail({ headers, body, attachments }: MailParts): string {
  const pages = new PageCollector()
  pages.add(formatHeaders(headers))
  pages.add(`\n${body.replace(/\r\n?/g, '\n')}\n`)
  if (attachments.length > 0) pages.add('\nAttachments:\n')
  pages.add(attachments.map(describeAttachment).join(''))
  return pages.end().join('\n')
}

const describeAttachment = ({ name, bytes }: Attachment): string => `${name} (${bytes.length} bytes)\n`

/** Formats a mail as Markdown, as `formatMail` does; null if the body has no structure. */
export function formatMailMarkdown({ headers, markdown = null, attachments }: MailParts): string | null {
  if (markdown === null) return null
  const head = renderMarkdown([{ kind: 'text', text: formatHeaders(headers), depth: 0 }])
  const files = attachments.map((file) => ({
    kind: 'item' as const,
    text: describeAttachment(file),
    depth: 0,
    marker: '-',
  }))
  const tail =
    files.length === 0 ? '' : renderMarkdown([{ kind: 'text', text: 'Attachments:', depth: 0 }, ...files])
  return [head, markdown, tail].filter((part) => part !== '').join('\n\n')
}

const formatHeaders = (headers: Headers): string =>
  headers
    .filter(([, value]) => value?.trim())
    .map(([name, value]) => `${name}: ${value!.replace(/\s+/g, ' ').trim()}\n`)
    .join('')

/** Appends mails that stand inside of a mail, with their headers and attachments. */
export function appendMails(mail: MailParts, inner: readonly MailParts[]): MailParts {
  const texts = inner.map(({ headers, body }) => `${formatHeaders(headers)}\n${body}`)
  return {
    headers: mail.headers,
    body: [mail.body, ...texts].filter((text) => text.trim() !== '').join('\n\n'),
    markdown: inner.length === 0 ? (mail.markdown ?? null) : null,
    attachments: [...mail.attachments, ...inner.flatMap(({ attachments }) => attachments)],
    detail: mail.detail ?? inner.find(({ detail }) => detail !== null)?.detail ?? null,
  }
}

/** Formats a person; the address only if it differs from the name. */
export const formatPerson = (name = '', address = ''): string =>
  name !== '' && address !== '' && name !== address ? `${name} <${address}>` : name || address
