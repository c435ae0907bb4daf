import { MBOX_LINE } from '../../../tasks/documents/media.ts'
import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'
import { Unreadable } from '../images/images.ts'
import { openCms } from './cms.ts'
import { findEnough } from './held.ts'
import { countMail } from './held-mail.ts'
import { estimateLetters } from './held-text.ts'
import {
  type Attachment,
  createMail,
  ENCRYPTED_MAIL,
  formatMail,
  formatMailMarkdown,
  limitAttachments,
  type Mail,
  type MailParts,
} from './mail.ts'
import { isMimeEntity, unwrapMail } from './mail-envelopes.ts'
import { readMime } from './mime.ts'
import type { PageText } from './texts.ts'
import { readTnef } from './tnef.ts'

/** Opens files of mails: a mail (.eml), Apple's form of it (.emlx), many mails (mbox, RFC 4155), TNEF and S/MIME. */

/** Opens a file of one or more mails, with a page for each. @throws Unreadable. */
export async function openMail(bytes: Uint8Array): Promise<Mail> {
  const source = unwrapApple(skipBlankLines(toBytes(bytes)))
  if (!/^From /.test(decodeLatin1(source.subarray(0, 5))))
    return createHeldMail(await readMime(source), source)
  return openMbox(source)
}

/** Counts the letters of a mail, unless it is too small for a loss. */
const countHeld = (source: Uint8Array, read: number): number =>
  source.length > findEnough(read) ? countMail(source) : 0

function createHeldMail(mail: MailParts, source: Uint8Array): Mail {
  const read = estimateLetters(mail.body)
  return {
    ...createMail(mail),
    holdings: { unit: 'mail', letters: () => countHeld(source, read), read: () => read },
  }
}

/** Removes the byte order mark. A text in UTF-16 becomes UTF-8. */
function toBytes(bytes: Uint8Array): Uint8Array {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return Buffer.from(new TextDecoder('utf-16le').decode(bytes))
  if (first === 0xfe && second === 0xff) return Buffer.from(new TextDecoder('utf-16be').decode(bytes))
  const isMarked = first === 0xef && second === 0xbb && bytes[2] === 0xbf
  return isMarked ? bytes.subarray(3) : bytes
}

function skipBlankLines(bytes: Uint8Array): Uint8Array {
  const at = bytes.findIndex((byte) => byte > 0x20)
  return at === -1 ? bytes : bytes.subarray(at)
}

/** Apple's mails begin with the length of the mail and end with a property list. */
function unwrapApple(bytes: Uint8Array): Uint8Array {
  const [line, length] = /^(\d{1,10})[ \t]*\r?\n/.exec(decodeLatin1(bytes.subarray(0, 32))) ?? []
  return line === undefined ? bytes : bytes.subarray(line.length, line.length + Number(length))
}

// A separator stands at the start or behind a blank line, and before headers or a blank line.
const SEPARATOR = new RegExp(`(?<=^|\\n\\r?\\n)${MBOX_LINE}(?=>?From |[!-9;-~]+:|\\r?\\n|$)`, 'g')

async function openMbox(bytes: Uint8Array): Promise<Mail> {
  const source = decodeLatin1(bytes)
  const separators = [...source.matchAll(SEPARATOR)]
  // A single mail may begin with a line of another form.
  const starts = separators.map(({ 0: line, index }) => index + line.length)
  if (separators[0]?.index !== 0) starts.unshift(source.indexOf('\n') + 1)
  const ends = [...separators.map(({ index }) => index).filter((index) => index > 0), bytes.length]
  const pages: MboxPage[] = []
  const attachments: Attachment[] = []
  const sourceOf = (n: number): Uint8Array => unquote(bytes.subarray(starts[n], ends[n]))
  for (const n of starts.keys()) {
    const mail = await readMime(sourceOf(n)).catch(toUnreadable)
    if (mail instanceof Unreadable) pages.push({ text: mail, detail: null, read: 0 })
    else {
      const limited = limitAttachments(limitAttachments(mail), MAX_MBOX_ATTACHMENTS - attachments.length)
      attachments.push(...limited.attachments)
      const read = estimateLetters(limited.body)
      const text = { text: formatMail(limited), markdown: formatMailMarkdown(limited) }
      pages.push({ text, detail: limited.detail, read })
    }
  }
  return {
    pageCount: pages.length,
    read: (n) => readPage(pages[n - 1]!),
    detail: (n) => pages[n - 1]!.detail,
    holdings: {
      unit: 'mail',
      letters: (n, read) => countHeld(sourceOf(n - 1), read),
      read: (n) => pages[n - 1]!.read,
    },
    attachments,
  }
}

// Limit of attachments of all mails together: each becomes a document.
const MAX_MBOX_ATTACHMENTS = 20_000

interface MboxPage {
  /** The mail, or the reason why it cannot be read. */
  readonly text: PageText | Unreadable
  readonly detail: string | null
  /** Letters of the body. */
  readonly read: number
}

function readPage({ text }: MboxPage): PageText {
  if (text instanceof Unreadable) throw text
  return text
}

function toUnreadable(error: unknown): Unreadable {
  if (error instanceof Unreadable) return error
  throw error
}

/** Removes the mark of lines that begin like a separator. */
function unquote(bytes: Uint8Array): Uint8Array {
  const source = decodeLatin1(bytes)
  return /^>+From /m.test(source) ? Buffer.from(source.replace(/^>(>*From )/gm, '$1'), 'latin1') : bytes
}

/** Opens a `winmail.dat`. @throws Unreadable. */
export const openTnef = async (bytes: Uint8Array): Promise<Mail> =>
  createMail(await unwrapMail(await readTnef(bytes), readMime))

/** Opens a signed or compressed message or file. @throws Unreadable. */
export async function openSigned(bytes: Uint8Array): Promise<Mail> {
  const content = openCms(bytes)
  if (content === 'encrypted') throw new Unreadable(ENCRYPTED_MAIL)
  if (content === null) throw new Unreadable('The signed message is damaged')
  if (isMimeEntity(content)) return createMail(await readMime(content))
  const attachment = { name: 'Signed file', mediaType: 'application/octet-stream', bytes: content }
  return createMail({ headers: [], body: '', attachments: [attachment], detail: null })
}
