import Burner from '@kenjiuno/msgreader/lib/Burner.js'

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

/**
 * Builds an Outlook file property by property (MS-OXMSG, 2.1 to 2.2.2). Strings are streams named after their property
 * tags.
 */
export function buildOutlookMail(mail: OutlookMail): Buffer {
  const entries: Entry[] = []
  const stream = (name: string, bytes: Uint8Array): number =>
    entries.push({ name, type: DOCUMENT, length: bytes.length, binaryProvider: () => bytes }) - 1
  const text = (tag: string, value: string): number =>
    stream(`__substg1.0_${tag}001F`, Uint8Array.from(Buffer.from(value, 'utf16le')))
  const properties = (
    size: number,
    values: readonly (readonly [tag: number, value: number])[] = [],
  ): number => {
    const bytes = Buffer.alloc(size + 16 * values.length)
    for (const [n, [tag, value]] of values.entries()) {
      bytes.writeUInt32LE(tag, size + 16 * n)
      bytes.writeUInt32LE(6, size + 16 * n + 4)
      bytes.writeUInt32LE(value, size + 16 * n + 8)
    }
    return stream('__properties_version1.0', bytes)
  }
  const folder = (name: string, fill: () => number[]): number => {
    const children: number[] = []
    const at = entries.push({ name, type: DIRECTORY, length: 0, children }) - 1
    children.push(...fill())
    return at
  }
  const top: number[] = []
  entries.push({ name: 'Root Entry', type: ROOT, length: 0, children: top })
  top.push(
    properties(32),
    text('001A', 'IPM.Note'),
    text('0037', mail.subject),
    text('0C1A', mail.senderName),
    text('5D01', mail.senderSmtpAddress),
    text('1000', mail.body),
    folder('__recip_version1.0_#00000000', () => [
      properties(8, [[0x0c150003, 1]]),
      text('3001', mail.recipient.name),
      text('39FE', mail.recipient.email),
    ]),
    folder('__attach_version1.0_#00000000', () => [
      properties(8),
      text('3707', mail.attachment.name),
      stream('__substg1.0_37010102', Uint8Array.from(mail.attachment.bytes)),
    ]),
  )
  return Buffer.from(Burner.burn(entries as never))
}
