import MsgReader, { type FieldsData } from '@kenjiuno/msgreader'
import { Unreadable } from '../images/images.ts'
import { type Attachment, createMail, type Headers, MAIL_WITHOUT_TEXT, type Mail } from './mail.ts'
import { unwrapMail } from './mail-envelopes.ts'
import {
  findEncoding,
  formatMapiHeaders,
  MapiProperties,
  nameAttachment,
  readBody,
  TAG,
  TYPE,
} from './mapi.ts'
import { readHeaders, readMime } from './mime.ts'

/**
 * Opens mail in Outlook's file format (MS-OXMSG). The only importer of `@kenjiuno/msgreader`, which reads the compound
 * file. It decodes texts without their code page, so this module decodes the properties itself.
 */

/** Opens a mail. @throws Unreadable. */
export async function openOutlook(bytes: Uint8Array): Promise<Mail> {
  const file = readOrThrow(() => new OutlookFile(bytes))
  const message = file.propertiesOf(file.message)
  const encoding = findEncoding(message)
  const recipients = (file.message.recipients ?? []).map((one) => file.propertiesOf(one))
  const headers = formatMapiHeaders(message, recipients, encoding)
  const { text, markdown, isIncomplete } = await readBody(message, encoding)
  const attachments = (file.message.attachments ?? [])
    // Hidden attachments are pictures that the body shows. A mail without text may have its content in them.
    .filter(({ attachmentHidden }) => attachmentHidden !== true || text.trim() === '')
    .map((field, n) => toAttachment(file, field, n, encoding))
  const transported = await readTransportHeaders(message.text(TAG.transportHeaders, encoding))
  const outer = {
    headers: mergeHeaders(headers, transported),
    body: text,
    markdown,
    attachments,
    detail: null,
  }
  const whole = await unwrapMail(outer, (entity) => readMime(entity))
  const missing = whole.body.trim() === '' && isIncomplete ? MAIL_WITHOUT_TEXT : null
  return createMail({ ...whole, detail: whole.detail ?? missing })
}

const SECTOR_BYTES = 512

/** The objects of a compound file and their properties. */
class OutlookFile {
  readonly message: FieldsData
  readonly #reader: MsgReader.default
  readonly #properties = new Map<FieldsData, MapiProperties>()

  constructor(bytes: Uint8Array) {
    // Some programs cut off the unused end of the last sector.
    const whole = new Uint8Array(Math.ceil(bytes.length / SECTOR_BYTES) * SECTOR_BYTES)
    whole.set(bytes)
    this.#reader = new MsgReader.default(whole.buffer)
    this.#reader.parserConfig = { propertyObserver: (owner, tag, value) => this.#observe(owner, tag, value) }
    this.message = this.#reader.getFileData()
    if (this.propertiesOf(this.message).isEmpty) throw new Unreadable('The mail is damaged')
  }

  propertiesOf(owner: FieldsData): MapiProperties {
    return this.#properties.get(owner) ?? new MapiProperties()
  }

  /** Returns the bytes of an attachment; none if it is only a link to a file. */
  contentOf(attachment: FieldsData): Uint8Array {
    const hasContent = attachment.dataId !== undefined || attachment.innerMsgContent === true
    return hasContent ? this.#reader.getAttachment(attachment).content : new Uint8Array()
  }

  #observe(owner: FieldsData, tag: number, value: Uint8Array | null): void {
    if (value === null || tag >>> 16 === TAG.data || isSizeEntry(tag, value)) return
    const properties = this.#properties.get(owner) ?? new MapiProperties()
    properties.set(tag, value)
    this.#properties.set(owner, properties)
  }
}

const SIZED_TYPES: readonly number[] = [TYPE.text8, TYPE.text16, TYPE.binary]
const ENTRY_BYTES = 8

// The table of properties has the size of each value with a stream of its own (MS-OXMSG, 2.4.2.2). A text has letters
// instead, so its first four bytes are a larger number.
const isSizeEntry = (tag: number, value: Uint8Array): boolean =>
  SIZED_TYPES.includes(tag & 0xffff) &&
  value.length === ENTRY_BYTES &&
  Buffer.from(value.buffer, value.byteOffset, ENTRY_BYTES).readUInt32LE(0) < MAX_ENTRY_SIZE
const MAX_ENTRY_SIZE = 2 ** 20

function toAttachment(
  file: OutlookFile,
  field: FieldsData,
  n: number,
  encoding: string | undefined,
): Attachment {
  const properties = file.propertiesOf(field)
  const inner = field.innerMsgContentFields && file.propertiesOf(field.innerMsgContentFields)
  const isMessage = inner !== undefined && inner.text(TAG.messageClass, encoding) !== ''
  const own = nameAttachment(properties, encoding) || (inner?.text(TAG.subject, encoding).trim() ?? '')
  const name = own || `Attachment ${n + 1}`
  return {
    name: isMessage && !/\.msg$/i.test(name) ? `${name}.msg` : name,
    mediaType: properties.text(TAG.mediaType, encoding) || 'application/octet-stream',
    bytes: readOrThrow(() => file.contentOf(field)),
  }
}

const readTransportHeaders = async (text: string): Promise<Headers> =>
  text.trim() === '' ? [] : readHeaders(text).catch(() => [])

/** Completes the headers of the message with those of its transport, which have the addresses for replies. */
function mergeHeaders(headers: Headers, transported: Headers): Headers {
  const [own, other] = [new Map(headers), new Map(transported)]
  if (other.get('Sender') === own.get('From')) other.delete('Sender')
  const names = new Set([...own.keys(), ...other.keys()])
  return [...names].map((name) => {
    const [first, second] = name === 'Reply-To' ? [other, own] : [own, other]
    return [name, first.get(name) || second.get(name)]
  })
}

function readOrThrow<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw new Unreadable('The mail is damaged', { cause })
  }
}
