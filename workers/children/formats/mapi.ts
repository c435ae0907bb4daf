import { isAscii, isUtf8 } from 'node:buffer'
import { decompressRTF } from '@kenjiuno/decompressrtf'
import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'
import { readHtmlPage } from '../markdown/html.ts'
import { encodingOfCodePage, encodingOfLocale } from './code-pages.ts'
import { formatPerson, type Headers } from './mail.ts'
import { cutAtNulByte, decodeMailHtml, decodeMailText } from './mail-text.ts'
import { chooseMarkdown, chooseVersion } from './mail-versions.ts'
import { openRtf } from './rtf.ts'

/**
 * Properties of Outlook's messages, recipients and attachments (MS-OXPROPS), which .msg files and TNEF share. Any of
 * them may be absent. The only importer of `@kenjiuno/decompressrtf`.
 */

/** Property types (MS-OXCDATA, 2.11.1). */
export const TYPE = {
  integer: 0x0003,
  object: 0x000d,
  text8: 0x001e,
  text16: 0x001f,
  time: 0x0040,
  binary: 0x0102,
}

export const TAG = {
  messageClass: 0x001a,
  subject: 0x0037,
  submitTime: 0x0039,
  representingName: 0x0042,
  replyNames: 0x0050,
  representingAddress: 0x0065,
  transportHeaders: 0x007d,
  recipientType: 0x0c15,
  senderName: 0x0c1a,
  senderAddress: 0x0c1f,
  displayBcc: 0x0e02,
  displayCc: 0x0e03,
  displayTo: 0x0e04,
  deliveryTime: 0x0e06,
  body: 0x1000,
  rtf: 0x1009,
  html: 0x1013,
  displayName: 0x3001,
  address: 0x3003,
  creationTime: 0x3007,
  data: 0x3701,
  extension: 0x3703,
  shortName: 0x3704,
  longName: 0x3707,
  mediaType: 0x370e,
  smtpAddress: 0x39fe,
  internetCodePage: 0x3fde,
  locale: 0x3ff1,
  codePage: 0x3ffd,
  senderSmtp: 0x5d01,
  representingSmtp: 0x5d02,
  isHidden: 0x7ffe,
}

/** The properties of one object. */
export class MapiProperties {
  readonly #values = new Map<number, Uint8Array>()

  /** Stores the value of a property tag, whose upper half is its ID and whose lower half its type. */
  set(tag: number, bytes: Uint8Array): void {
    this.#values.set(tag >>> 0, bytes)
  }

  get isEmpty(): boolean {
    return this.#values.size === 0
  }

  bytes(id: number, type: number): Uint8Array | undefined {
    return this.#values.get(((id << 16) | type) >>> 0)
  }

  integer(id: number): number | undefined {
    const bytes = this.bytes(id, TYPE.integer)
    return bytes !== undefined && bytes.length >= 4 ? viewOf(bytes).getUint32(0, true) : undefined
  }

  /** Reads a time (100 ns since 1601) in ISO 8601. */
  time(id: number): string | undefined {
    const bytes = this.bytes(id, TYPE.time)
    if (bytes === undefined || bytes.length < 8) return undefined
    const date = new Date(Number(viewOf(bytes).getBigUint64(0, true) / 10_000n) - 11_644_473_600_000)
    return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
  }

  /** Reads a text; '' if it is absent. `encoding` is that of non-Unicode text. */
  text(id: number, encoding: string | undefined): string {
    const wide = this.bytes(id, TYPE.text16)
    if (wide !== undefined) return cutAtNul(new TextDecoder('utf-16le').decode(wide))
    const narrow = this.bytes(id, TYPE.text8)
    return narrow === undefined ? '' : decodeMailText(cutAtNulByte(narrow), encoding)
  }
}

export const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

const cutAtNul = (text: string): string => {
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}

/** Returns the encoding of a message's non-Unicode texts; undefined if it does not tell. */
export const findEncoding = (message: MapiProperties): string | undefined =>
  encodingOfCodePage(message.integer(TAG.codePage)) ??
  encodingOfCodePage(message.integer(TAG.internetCodePage)) ??
  encodingOfLocale(message.integer(TAG.locale))

interface Body {
  readonly text: string
  /** The Markdown of the body; null if it has no structure. */
  readonly markdown: string | null
  /** True if the body has content other than text, or cannot be decoded. */
  readonly isIncomplete: boolean
}

/** Reads the best version of a message's body. */
export async function readBody(message: MapiProperties, encoding: string | undefined): Promise<Body> {
  const plain = message.text(TAG.body, encoding)
  const html = readHtml(message, encoding)
  const rich = readHtmlPage(html)
  const compressed = message.bytes(TAG.rtf, TYPE.binary)
  if (rich.text.trim() !== '' || compressed === undefined)
    return {
      text: chooseVersion(plain, rich.text),
      markdown: chooseMarkdown(plain, rich),
      isIncomplete: PICTURE.test(html),
    }
  const rtf = decompressRtf(compressed)
  if (rtf === null) return { text: plain, markdown: null, isIncomplete: true }
  const isIncomplete = PICTURE.test(html) || PICTURE.test(decodeLatin1(rtf))
  return { text: chooseVersion(plain, await readRtf(rtf)), markdown: null, isIncomplete }
}

const PICTURE = /<(?:img|svg|object|v:imagedata)\b|\\(?:pict|object)\b/i

/** Reads the HTML body. Its bytes are in the Internet code page, whatever the HTML declares. */
function readHtml(message: MapiProperties, encoding: string | undefined): string {
  const bytes = message.bytes(TAG.html, TYPE.binary) ?? message.bytes(TAG.html, TYPE.text8)
  if (bytes === undefined) return message.text(TAG.html, encoding)
  // Some programs store UTF-8 and keep the code page of another text.
  const isUnicode = isUtf8(bytes) && !isAscii(bytes)
  const declared = isUnicode ? 'utf-8' : encodingOfCodePage(message.integer(TAG.internetCodePage))
  return declared === undefined ? decodeMailHtml(bytes, encoding) : decodeMailText(bytes, declared)
}

const HEADER_BYTES = 16

/** Decompresses an RTF body (MS-OXRTFCP); null if it is damaged. */
function decompressRtf(compressed: Uint8Array): Uint8Array | null {
  if (compressed.length < HEADER_BYTES) return null
  // The library reads as many bytes as the header claims.
  const bytes = compressed.slice()
  const view = viewOf(bytes)
  view.setUint32(0, Math.min(view.getUint32(0, true), bytes.length - 4), true)
  try {
    return Uint8Array.from(decompressRTF(bytes as unknown as number[]))
  } catch {
    return null
  }
}

async function readRtf(rtf: Uint8Array): Promise<string> {
  const document = openRtf(separateBlocks(rtf))
  const pages: string[] = []
  for (let n = 1; n <= document.pageCount; n++) pages.push((await document.read(n)).text)
  return pages.join('\n\n')
}

const BLOCK_TAG = /<\/?(?:p|div|br|tr|li|h[1-6]|table|blockquote|ul|ol|dl|dt|dd|hr|pre|title)\b/i
const CELL_TAG = /<\/?t[dh]\b/i

/**
 * Replaces encapsulated HTML tags (MS-OXRTFEX) by what they separate. Readers of RTF skip them, and not every writer
 * repeats their effect in RTF.
 */
function separateBlocks(rtf: Uint8Array): Uint8Array {
  const source = decodeLatin1(rtf)
  if (!source.slice(0, 2000).includes('\\fromhtml')) return rtf
  const separated = source.replace(/\{\\\*\\htmltag\d{0,9} ?([^{}]*)\}/g, (_, html: string) => {
    if (BLOCK_TAG.test(html)) return '{\\line }'
    return CELL_TAG.test(html) ? '{\\tab }' : ''
  })
  return Buffer.from(separated, 'latin1')
}

/** Formats the headers of a message from its properties. */
export function formatMapiHeaders(
  message: MapiProperties,
  recipients: readonly MapiProperties[],
  encoding: string | undefined,
): Headers {
  const text = (id: number): string => message.text(id, encoding)
  const sender = formatPerson(
    text(TAG.senderName),
    chooseAddress(text(TAG.senderSmtp), text(TAG.senderAddress)),
  )
  const author = formatPerson(
    text(TAG.representingName),
    chooseAddress(text(TAG.representingSmtp), text(TAG.representingAddress)),
  )
  const listRecipients = (type: number, display: number): string =>
    recipients
      .filter((one) => (one.integer(TAG.recipientType) ?? 1) === type)
      .map((one) => formatRecipient(one, encoding))
      .filter((one) => one !== '')
      .join(', ') || text(display)
  return [
    ['Subject', text(TAG.subject)],
    // A delegate sends on behalf of the author.
    ['From', isSamePerson(author, sender) ? sender : author],
    ['Sender', isSamePerson(author, sender) ? '' : sender],
    ['Reply-To', text(TAG.replyNames)],
    ['To', listRecipients(1, TAG.displayTo)],
    ['Cc', listRecipients(2, TAG.displayCc)],
    ['Bcc', listRecipients(3, TAG.displayBcc)],
    [
      'Date',
      message.time(TAG.deliveryTime) ?? message.time(TAG.submitTime) ?? message.time(TAG.creationTime),
    ],
  ]
}

const nameOf = (person: string): string =>
  person
    .replace(/ <.*>$/, '')
    .trim()
    .toLowerCase()
const isSamePerson = (author: string, sender: string): boolean =>
  nameOf(author) === '' || nameOf(author) === nameOf(sender) || sender.includes(author)

function formatRecipient(recipient: MapiProperties, encoding: string | undefined): string {
  const text = (id: number): string => recipient.text(id, encoding)
  return formatPerson(text(TAG.displayName), chooseAddress(text(TAG.smtpAddress), text(TAG.address)))
}

// Exchange uses directory names such as `/o=Org/cn=ane` as addresses.
const chooseAddress = (smtp: string, address: string): string =>
  smtp || (/^\/o=/i.test(address) ? '' : address)

/** Names an attachment from its properties; '' if they have no name. */
export function nameAttachment(attachment: MapiProperties, encoding: string | undefined): string {
  const text = (id: number): string => attachment.text(id, encoding).trim()
  const name = text(TAG.longName) || text(TAG.displayName) || text(TAG.shortName)
  const extension = text(TAG.extension) || (/\.\w{1,8}$/.exec(text(TAG.shortName))?.[0] ?? '')
  if (name === '' || extension === '' || /\.\w{1,8}$/.test(name)) return name
  return `${name}.${extension.replace(/^\./, '')}`
}
