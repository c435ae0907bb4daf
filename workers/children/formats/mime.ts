import { isUtf8 } from 'node:buffer'
import PostalMime, { type Address, addressParser, type Email, type Attachment as Part } from 'postal-mime'
import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'
import { Unreadable } from '../images/images.ts'
import { readHtmlPage } from '../markdown/html.ts'
import {
  type Attachment,
  appendMails,
  ENCRYPTED_MAIL,
  type Headers,
  MAIL_WITHOUT_TEXT,
  type MailParts,
} from './mail.ts'
import { unwrapMail } from './mail-envelopes.ts'
import { decodeMailHtml, decodeMailText } from './mail-text.ts'
import { chooseMarkdown, chooseVersion } from './mail-versions.ts'
import { separateUuencoded } from './uuencode.ts'

/** Reads mail in transport format (RFC 5322, MIME). The only importer of `postal-mime`. */

// Mails inside of mails, at deeper levels, stay attachments.
const MAX_DEPTH = 10

/** Reads a mail and the mails and envelopes inside of it. @throws Unreadable. */
export async function readMime(bytes: Uint8Array, depth = 0): Promise<MailParts> {
  const mail = await parse(bytes)
  const html = mail.html ?? ''
  const { text, files } = separateUuencoded(mail.text ?? '')
  const rich = readHtmlPage(html)
  const body = chooseVersion(text, rich.text)
  const inner: MailParts[] = []
  const attachments: Attachment[] = [...files]
  const isReport = mail.attachments.some(({ mimeType }) => REPORT_TYPE.test(mimeType))
  for (const [n, part] of mail.attachments.entries()) {
    // A mail without text may have its content in pictures.
    if (body.trim() !== '' && isShownInBody(part, html)) continue
    const isForwarded = MAIL_TYPE.test(part.mimeType) && part.disposition !== 'attachment' && !isReport
    const forwarded = isForwarded && depth < MAX_DEPTH ? await readForwarded(toBytes(part), depth) : null
    if (forwarded === null) attachments.push(await toAttachment(part, n))
    else inner.push(forwarded)
  }
  const outer = appendMails(
    { headers: listHeaders(mail), body, markdown: chooseMarkdown(text, rich), attachments, detail: null },
    inner,
  )
  const whole = depth < MAX_DEPTH ? await unwrapMail(outer, (entity) => readMime(entity, depth + 1)) : outer
  const detail = whole.detail ?? (whole.body.trim() === '' ? findDetail(mail, bytes) : null)
  return { ...whole, detail }
}

/** Reads a mail inside of a mail; null if it is damaged. */
const readForwarded = (bytes: Uint8Array, depth: number): Promise<MailParts | null> =>
  readMime(bytes, depth + 1).catch(() => null)

async function parse(bytes: Uint8Array): Promise<Email> {
  const options = { attachmentEncoding: 'arraybuffer', forceRfc822Attachments: true } as const
  try {
    return await new MimeParser(bytes, options).parse(bytes)
  } catch (cause) {
    throw new Unreadable('The mail is damaged', { cause })
  }
}

const MAIL_TYPE = /^message\/(rfc822|global|news)$/
const REPORT_TYPE = /^message\/(delivery-status|feedback-report|disposition-notification)$/

/** Headers that name people, in the order of the page. */
const PEOPLE_HEADERS =
  'From Sender Reply-To To Cc Bcc Resent-From Resent-Sender Resent-Reply-To Resent-To Resent-Cc Resent-Bcc Mail-Reply-To Mail-Followup-To Disposition-Notification-To Apparently-To'.split(
    ' ',
  )
/** Headers of the transport, which mostly repeat an address. */
const ENVELOPE_HEADERS = 'Delivered-To X-Original-To Envelope-To Return-Path X-Forwarded-To'.split(' ')

/** Lists the headers that the page shows. */
export function listHeaders({ subject, date, headers }: Email): Headers {
  const read = (name: string): string =>
    headers
      .filter(({ key }) => key === name.toLowerCase())
      .map(({ value }) => formatAddresses(addressParser(value)) || value)
      .join(', ')
  const people = PEOPLE_HEADERS.map((name) => [name, read(name)] as const)
  const named = people.map(([, value]) => value.toLowerCase()).join('\n')
  const envelope = ENVELOPE_HEADERS.map((name) => [name, read(name)] as const).filter(
    ([, value]) => !named.includes(value.toLowerCase()),
  )
  return [['Subject', subject], ...people, ['Date', date], ...envelope]
}

/** Lists the headers of a mail of which only the headers are known. */
export async function readHeaders(text: string): Promise<Headers> {
  return listHeaders(await parse(Buffer.from(`${text.trim()}\r\n\r\n`)))
}

const formatAddresses = (all: readonly Address[]): string =>
  all
    .flatMap((one) => one.group ?? [one])
    .map(({ name, address }) => (name && address ? `${name} <${address}>` : name || address))
    .join(', ')

// True if the attachment is an icon or logo that the body shows. Apple Mail marks every picture as inline, even an
// attached photo, so the body must also reference the picture.
const isShownInBody = ({ related, disposition, mimeType, contentId = '' }: Part, html: string): boolean =>
  mimeType.startsWith('image/') &&
  (related === true ||
    (disposition === 'inline' && contentId !== '' && html.includes(`cid:${contentId.replace(/^<|>$/g, '')}`)))

const toBytes = ({ content }: Part): Uint8Array =>
  typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)

async function toAttachment(part: Part, n: number): Promise<Attachment> {
  const bytes = toBytes(part)
  return { name: await nameAttachment(part, bytes, n), mediaType: part.mimeType, bytes }
}

/** Names an attachment; a mail without a name by its subject. */
async function nameAttachment(part: Part, bytes: Uint8Array, n: number): Promise<string> {
  const name = part.filename?.trim() || part.description?.trim()
  if (name) return name
  const mail = MAIL_TYPE.test(part.mimeType) ? await parse(bytes).catch(() => null) : null
  const subject = mail?.subject?.trim()
  return subject ? `${subject}.eml` : `Attachment ${n + 1}`
}

/** Says why the body has no text although the mail has content; null if the mail has none. */
function findDetail({ headers, html = '', attachments }: Email, bytes: Uint8Array): string | null {
  const type = headers.find(({ key }) => key === 'content-type')?.value ?? ''
  if (/^\s*multipart\/encrypted\b/i.test(type)) return ENCRYPTED_MAIL
  if (/<(img|svg|object|embed|v:imagedata)\b/i.test(html)) return MAIL_WITHOUT_TEXT
  return attachments.length === 0 && hasContent(bytes) ? MAIL_WITHOUT_TEXT : null
}

/** True if a line after the headers is neither a boundary nor a header nor a tag, as in an empty HTML part. */
function hasContent(bytes: Uint8Array): boolean {
  const source = decodeLatin1(bytes)
  const at = source.search(/\n\r?\n/)
  const lines = at === -1 ? [] : source.slice(at).split('\n')
  return lines.some((line) => !/^(--.*|[!-9;-~]+:.*|\s.*|<.*>)?\s*$/.test(line))
}

/** The parts of `PostalMime` that its types omit. */
interface ParserInternals {
  readonly currentNode: Node
  processLine(line: Uint8Array, isFinal: boolean): Promise<void>
  collectNode(node: Node, alternative: unknown, related: boolean): Promise<void>
}

interface Node {
  readonly state: string
  readonly contentType: {
    readonly multipart: string | false
    readonly parsed: { value: string; readonly params: { charset?: string } }
  }
  readonly contentDisposition: {
    readonly parsed: { readonly value: string; readonly params: { readonly filename?: string } }
  }
  content: ArrayBuffer | null
}

const base = PostalMime.prototype as unknown as ParserInternals

// Names that mean "not declared". Many programs declare US-ASCII for any 8-bit text.
const UNDECLARED =
  /^(|us-ascii|ascii|ansi_x3.*|iso646-us|.*unknown.*|default|none|binary|8bit|x-user-defined)$/i

// Types of bodies that the library takes for files. RFC 1896 has tags, too.
const BODY_TYPES: ReadonlyMap<string, string> = new Map([
  ['', 'text/plain'],
  ['text', 'text/plain'],
  ['plain', 'text/plain'],
  ['text/markdown', 'text/plain'],
  ['text/x-markdown', 'text/plain'],
  ['text/enriched', 'text/html'],
  ['text/richtext', 'text/html'],
  ['application/xhtml+xml', 'text/html'],
])

/** Decodes 8-bit bytes without a declared encoding, which the library takes for UTF-8, as text files are decoded. */
class MimeParser extends PostalMime {
  // The encoding that some part declares is probably that of headers, too.
  readonly #encoding: string | undefined

  constructor(bytes: Uint8Array, options: ConstructorParameters<typeof PostalMime>[0]) {
    super(options)
    this.#encoding = isUtf8(bytes) ? undefined : findDeclaredEncoding(bytes)
  }

  processLine(line: Uint8Array, isFinal: boolean): Promise<void> {
    const isHeader = (this as unknown as ParserInternals).currentNode.state === 'header'
    const decoded = isHeader && !isUtf8(line) ? Buffer.from(decodeMailText(line, this.#encoding)) : line
    return base.processLine.call(this, decoded, isFinal)
  }

  collectNode(node: Node, alternative: unknown, related: boolean): Promise<void> {
    const { multipart, parsed } = node.contentType
    const { value: disposition, params } = node.contentDisposition.parsed
    const isFile = disposition === 'attachment' || params.filename !== undefined || 'name' in parsed.params
    if (!multipart && !isFile) parsed.value = BODY_TYPES.get(parsed.value) ?? parsed.value
    const isText = /^text\/(plain|html)$/.test(parsed.value) && disposition !== 'attachment'
    if (!multipart && node.content && (isText || /^(text\/calendar|application\/ics)$/.test(parsed.value)))
      this.#decode(node, new Uint8Array(node.content))
    return base.collectNode.call(this, node, alternative, related)
  }

  #decode(node: Node, content: Uint8Array): void {
    const { value, params } = node.contentType.parsed
    const declared = params.charset?.trim() ?? ''
    const isWrong = /^utf-?8$/i.test(declared) && !isUtf8(content) && !hasUtf8Characters(content)
    if (!isWrong && !UNDECLARED.test(declared)) return
    const encoding = isUtf8(content) ? undefined : this.#encoding
    const text = value === 'text/html' ? decodeMailHtml(content, encoding) : decodeMailText(content, encoding)
    node.content = Uint8Array.from(Buffer.from(text)).buffer
    params.charset = 'utf-8'
  }
}

const hasUtf8Characters = (bytes: Uint8Array): boolean => /[\xc2-\xf4][\x80-\xbf]/.test(decodeLatin1(bytes))

/** Returns the first encoding that a mail declares, except for UTF-8 and US-ASCII; undefined if there is none. */
function findDeclaredEncoding(bytes: Uint8Array): string | undefined {
  for (const [, name = ''] of decodeLatin1(bytes).matchAll(/\bcharset\s{0,9}=\s{0,9}"?([\w:.-]{3,40})/gi))
    if (!UNDECLARED.test(name) && !/^utf-?8$/i.test(name)) return name
  return undefined
}
