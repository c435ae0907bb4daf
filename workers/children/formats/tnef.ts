import { Unreadable } from '../images/images.ts'
import { encodingOfCodePage } from './code-pages.ts'
import { type Attachment, appendMails, MAIL_WITHOUT_TEXT, type MailParts } from './mail.ts'
import { cutAtNulByte, decodeMailText } from './mail-text.ts'
import {
  findEncoding,
  formatMapiHeaders,
  MapiProperties,
  nameAttachment,
  readBody,
  TAG,
  TYPE,
  viewOf,
} from './mapi.ts'

/** Reads TNEF, the content of `winmail.dat` (MS-OXTNEF). */

const SIGNATURE = 0x223e9f78
const HEADER_BYTES = 6
// Level, ID and length of an attribute; its checksum follows the value.
const ATTRIBUTE_BYTES = 9
const CHECKSUM_BYTES = 2

const ATTRIBUTE = {
  subject: 0x00018004,
  attachmentTitle: 0x00018010,
  body: 0x0002800c,
  attachmentData: 0x0006800f,
  attachmentStart: 0x00069002,
  messageProperties: 0x00069003,
  recipients: 0x00069004,
  attachmentProperties: 0x00069005,
  codePage: 0x00069007,
}

// Messages inside of messages, at deeper levels, are skipped.
const MAX_DEPTH = 10

export const isTnef = (bytes: Uint8Array): boolean =>
  bytes.length >= HEADER_BYTES && viewOf(bytes).getUint32(0, true) === SIGNATURE

interface TnefAttachment {
  title: Uint8Array | undefined
  data: Uint8Array | undefined
  properties: MapiProperties
}

/** The attributes of a message, not decoded yet. */
interface Tnef {
  readonly message: MapiProperties
  recipients: readonly MapiProperties[]
  readonly attachments: TnefAttachment[]
  subject: Uint8Array | undefined
  body: Uint8Array | undefined
  encoding: string | undefined
}

/** Reads a message and the messages inside of it. A truncated file yields what it has. @throws Unreadable. */
export async function readTnef(bytes: Uint8Array, depth = 0): Promise<MailParts> {
  if (!isTnef(bytes)) throw new Unreadable('The mail is damaged')
  const tnef = readAttributes(bytes)
  if (tnef.message.isEmpty && tnef.body === undefined && tnef.attachments.length === 0)
    throw new Unreadable('The mail is damaged')
  const encoding = tnef.encoding ?? findEncoding(tnef.message)
  const attachments: Attachment[] = []
  const inner: MailParts[] = []
  for (const [n, attachment] of tnef.attachments.entries()) {
    const { data, isMessage } = findData(attachment)
    if (isMessage) {
      if (depth < MAX_DEPTH) inner.push(await readTnef(data, depth + 1))
    } else if (data.length > 0) attachments.push(toAttachment(attachment, data, n, encoding))
  }
  const { text, isIncomplete } = await readBody(tnef.message, encoding)
  const body = text.trim() === '' && tnef.body !== undefined ? decodeString(tnef.body, encoding) : text
  const detail = body.trim() === '' && isIncomplete ? MAIL_WITHOUT_TEXT : null
  return appendMails({ headers: listHeaders(tnef, encoding), body, attachments, detail }, inner)
}

function listHeaders(
  { message, recipients, subject }: Tnef,
  encoding: string | undefined,
): MailParts['headers'] {
  return formatMapiHeaders(message, recipients, encoding).map(([name, value]) =>
    name === 'Subject' && !value && subject !== undefined
      ? [name, decodeString(subject, encoding)]
      : [name, value],
  )
}

const decodeString = (bytes: Uint8Array, encoding: string | undefined): string =>
  decodeMailText(cutAtNulByte(bytes), encoding)

function toAttachment(
  { title, properties }: TnefAttachment,
  bytes: Uint8Array,
  n: number,
  encoding: string | undefined,
): Attachment {
  const name =
    nameAttachment(properties, encoding) || (title === undefined ? '' : decodeString(title, encoding))
  const mediaType = properties.text(TAG.mediaType, encoding) || 'application/octet-stream'
  return { name: name || `Attachment ${n + 1}`, mediaType, bytes }
}

// An object begins with the ID of its interface.
const INTERFACE_BYTES = 16

function findData({ data, properties }: TnefAttachment): { data: Uint8Array; isMessage: boolean } {
  const object = properties.bytes(TAG.data, TYPE.object)?.subarray(INTERFACE_BYTES)
  if (object !== undefined && isTnef(object)) return { data: object, isMessage: true }
  const isEmpty = data === undefined || data.length === 0
  const bytes = isEmpty ? (properties.bytes(TAG.data, TYPE.binary) ?? object) : data
  return { data: bytes ?? new Uint8Array(), isMessage: false }
}

function readAttributes(bytes: Uint8Array): Tnef {
  const tnef: Tnef = {
    message: new MapiProperties(),
    recipients: [],
    attachments: [],
    subject: undefined,
    body: undefined,
    encoding: undefined,
  }
  const view = viewOf(bytes)
  for (let at = HEADER_BYTES; at + ATTRIBUTE_BYTES <= bytes.length; ) {
    const id = view.getUint32(at + 1, true)
    const from = at + ATTRIBUTE_BYTES
    const end = from + view.getUint32(at + 5, true)
    takeAttribute(tnef, id, bytes.subarray(from, end))
    at = end + CHECKSUM_BYTES
  }
  return tnef
}

function takeAttribute(tnef: Tnef, id: number, value: Uint8Array): void {
  const attachment = tnef.attachments.at(-1)
  if (id === ATTRIBUTE.subject) tnef.subject = value
  else if (id === ATTRIBUTE.body) tnef.body = value
  else if (id === ATTRIBUTE.messageProperties) new PropertyReader(value).readInto(tnef.message)
  else if (id === ATTRIBUTE.recipients) tnef.recipients = new PropertyReader(value).readRows()
  else if (id === ATTRIBUTE.codePage && value.length >= 4)
    tnef.encoding = encodingOfCodePage(viewOf(value).getUint32(0, true))
  else if (id === ATTRIBUTE.attachmentStart)
    tnef.attachments.push({ title: undefined, data: undefined, properties: new MapiProperties() })
  else if (attachment === undefined) return
  else if (id === ATTRIBUTE.attachmentTitle) attachment.title = value
  else if (id === ATTRIBUTE.attachmentData) attachment.data = value
  else if (id === ATTRIBUTE.attachmentProperties) new PropertyReader(value).readInto(attachment.properties)
}

// Bytes of values by type, padded to four; other types have a length of their own (MS-OXTNEF, 2.1.3.4).
const FIXED_BYTES: ReadonlyMap<number, number> = new Map([
  [0x0002, 4],
  [0x0003, 4],
  [0x0004, 4],
  [0x0005, 8],
  [0x0006, 8],
  [0x0007, 8],
  [0x000a, 4],
  [0x000b, 4],
  [0x0014, 8],
  [0x0040, 8],
  [0x0048, 16],
])
const VARIABLE_TYPES: readonly number[] = [TYPE.object, TYPE.text8, TYPE.text16, TYPE.binary]
const MULTIPLE_VALUES = 0x1000

/** Reads lists of properties. Ends at the first one that is damaged. */
class PropertyReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = viewOf(bytes)
  }

  readRows(): MapiProperties[] {
    const rows: MapiProperties[] = []
    for (let left = this.#count(); left > 0 && this.#at < this.#bytes.length; left--) {
      const row = new MapiProperties()
      rows.push(row)
      if (!this.readInto(row)) break
    }
    return rows
  }

  /** Returns false if the list is damaged. */
  readInto(properties: MapiProperties): boolean {
    for (let left = this.#count(); left > 0; left--) if (!this.#readProperty(properties)) return false
    return true
  }

  #readProperty(properties: MapiProperties): boolean {
    const tag = this.#count()
    // A tag is stored as type and ID, each of two bytes.
    const [type, id] = [tag & 0xffff, tag >>> 16]
    if (id >= 0x8000) this.#skipName()
    const base = type & ~MULTIPLE_VALUES
    const size = FIXED_BYTES.get(base)
    if (size === undefined && !VARIABLE_TYPES.includes(base)) return false
    const values = size === undefined || type !== base ? this.#count() : 1
    for (let n = 0; n < values; n++) {
      const length = size ?? this.#count()
      if (this.#at + length > this.#bytes.length) return false
      if (n === 0) properties.set(tag, this.#bytes.subarray(this.#at, this.#at + length))
      this.#skip(length)
    }
    return true
  }

  /** Skips the name of a property outside of the standard. */
  #skipName(): void {
    this.#skip(INTERFACE_BYTES)
    const isNumber = this.#count() === 0
    if (isNumber) this.#skip(4)
    else this.#skip(this.#count())
  }

  /** Reads a number; 0 at the end. */
  #count(): number {
    const number = this.#at + 4 <= this.#bytes.length ? this.#view.getUint32(this.#at, true) : 0
    this.#at += 4
    return number
  }

  /** Values are padded to four bytes. */
  #skip(length: number): void {
    this.#at += Math.ceil(length / 4) * 4
  }
}
