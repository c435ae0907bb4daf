import Burner from '@kenjiuno/msgreader/lib/Burner.js'

/** An object of an Outlook file. Properties have their tag, in hexadecimal, as name. */
export interface OutlookObject {
  /** Texts in UTF-16, bytes as they are, or 32-bit numbers. */
  readonly properties: Readonly<Record<string, string | Uint8Array | number>>
  readonly recipients?: readonly OutlookObject[]
  readonly attachments?: readonly OutlookObject[]
  /** The message inside of an attachment. */
  readonly message?: OutlookObject
}

/** The content of an Outlook message. */
export interface OutlookMail {
  readonly subject: string
  readonly senderName: string
  readonly senderSmtpAddress: string
  readonly body: string
  readonly recipient: { readonly name: string; readonly email: string }
  readonly attachment: { readonly name: string; readonly bytes: Uint8Array }
}

interface Entry {
  readonly name: string
  readonly type: number
  readonly length: number
  readonly binaryProvider?: () => Uint8Array
  readonly children?: number[]
}

// Entry types (MS-CFB, 2.6.1).
const [DIRECTORY, DOCUMENT, ROOT] = [1, 2, 5]
// Bytes before the properties (MS-OXMSG, 2.4.1).
const [TOP_BYTES, MESSAGE_BYTES, PART_BYTES] = [32, 24, 8]

/**
 * Builds an Outlook file property by property (MS-OXMSG, 2.1 to 2.2.2). Strings are streams named after their property
 * tags; the table of properties has their sizes.
 */
export function buildOutlookFile(mail: OutlookObject): Buffer {
  const entries: Entry[] = []
  const add = (entry: Entry): number => entries.push(entry) - 1
  const stream = (name: string, bytes: Uint8Array): number =>
    add({ name, type: DOCUMENT, length: bytes.length, binaryProvider: () => Uint8Array.from(bytes) })
  const folder = (name: string, fill: () => number[]): number => {
    const children: number[] = []
    const at = add({ name, type: DIRECTORY, length: 0, children })
    children.push(...fill())
    return at
  }
  const fill = (object: OutlookObject, headerBytes: number): number[] => {
    const { recipients = [], attachments = [], message } = object
    const values = Object.entries(object.properties)
    const table = Buffer.alloc(headerBytes + 16 * values.length)
    const children: number[] = []
    for (const [n, [tag, value]] of values.entries()) {
      const at = headerBytes + 16 * n
      const bytes = typeof value === 'string' ? Buffer.from(value, 'utf16le') : value
      table.writeUInt32LE(Number.parseInt(tag, 16), at)
      table.writeUInt32LE(6, at + 4)
      table.writeUInt32LE(typeof bytes === 'number' ? bytes : bytes.length + 2, at + 8)
      if (typeof bytes !== 'number') children.push(stream(`__substg1.0_${tag}`, bytes))
    }
    const numbered = (name: string, all: readonly OutlookObject[]): number[] =>
      all.map((part, n) => folder(`${name}_version1.0_#0000000${n}`, () => fill(part, PART_BYTES)))
    return [
      ...children,
      stream('__properties_version1.0', table),
      ...numbered('__recip', recipients),
      ...numbered('__attach', attachments),
      ...(message ? [folder('__substg1.0_3701000D', () => fill(message, MESSAGE_BYTES))] : []),
    ]
  }
  const top: number[] = []
  add({ name: 'Root Entry', type: ROOT, length: 0, children: top })
  top.push(...fill(mail, TOP_BYTES))
  return Buffer.from(Burner.burn(entries as never))
}

/** Builds an Outlook file of a mail with one recipient and one attachment. */
export const buildOutlookMail = (mail: OutlookMail): Buffer =>
  buildOutlookFile({
    properties: {
      '001A001F': 'IPM.Note',
      '0037001F': mail.subject,
      '0C1A001F': mail.senderName,
      '5D01001F': mail.senderSmtpAddress,
      '1000001F': mail.body,
    },
    recipients: [
      { properties: { '0C150003': 1, '3001001F': mail.recipient.name, '39FE001F': mail.recipient.email } },
    ],
    attachments: [{ properties: { '3707001F': mail.attachment.name, '37010102': mail.attachment.bytes } }],
  })
