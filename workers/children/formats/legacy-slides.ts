import { decodeText } from '../../../tasks/formats/decode.ts'
import { Unreadable } from '../images/images.ts'
import { estimateLetters } from './held-text.ts'
import { type DecryptBlock, unlockBlocks } from './legacy-crypto.ts'
import { SLIDES_DEFAULT_PASSWORD, tryPasswords } from './office-crypto.ts'

/** Reads the text of PowerPoint 97 to 2003 (MS-PPT). No maintained library does. */

// Types of records (MS-PPT, 2.13.24).
const SLIDE_LIST = 0x0ff0
const SLIDE_PERSIST = 0x03f3
const SLIDE_ATOM = 0x03ef
const USER_EDIT = 0x0ff5
const PERSIST_DIRECTORY = 0x1772
const TEXT_CHARACTERS = 0x0fa0
const TEXT_BYTES = 0x0fa8
const TEXT_HEADER = 0x0f9f
const OUTLINE_REFERENCE = 0x0f9e
const COMMENT = 0x2ee0
const STRING = 0x0fba

const CONTAINER_VERSION = 0xf
// Containers of PowerPoint 95 begin so.
const OLD_CONTAINER = 3
// Limits of nested containers, of edits that a file keeps, and of records in all. Each record takes eight bytes.
const MAX_DEPTH = 50
const MAX_EDITS = 10_000
const USER_EDIT_AT = 16
const ENCRYPTION = 0x2f14
const ENCRYPTION_ID_AT = 28
const RECORD_HEAD_BYTES = 8

interface PptRecord {
  readonly type: number
  readonly instance: number
  readonly isContainer: boolean
  readonly data: Buffer
}

/** Reads a record; null at the end of the bytes. A record that claims more bytes than there are ends with them. */
function readRecord(bytes: Buffer, at: number): PptRecord | null {
  if (at < 0 || at + 8 > bytes.length) return null
  const head = bytes.readUInt16LE(at)
  const from = at + 8
  return {
    type: bytes.readUInt16LE(at + 2),
    instance: head >> 4,
    isContainer: (head & 0xf) === CONTAINER_VERSION,
    data: bytes.subarray(from, Math.min(bytes.length, from + bytes.readUInt32LE(at + 4))),
  }
}

function* listRecords(bytes: Buffer): Generator<PptRecord> {
  for (let at = 0; ; ) {
    const record = readRecord(bytes, at)
    if (record === null) return
    yield record
    at += 8 + record.data.length
  }
}

/** A slide or its notes, by the list of the document. */
interface ListedSlide {
  readonly persistId: number
  readonly slideId: number
  /** Texts of its placeholders, which the slide refers to by their numbers. */
  readonly outline: string[]
}

export const OLD_PRESENTATION = 'Presentations of PowerPoint 95 or older cannot be read'

/** Reads the text of PowerPoint 95, which is in a stream of its own besides the slides. */
function readOldText(text: Uint8Array | undefined): string {
  const decoded = text && decodeText(text)
  if (!decoded) throw new Unreadable(OLD_PRESENTATION)
  return decoded.text.replace(/[\r\v]/g, '\n').trim()
}

/**
 * Returns the text of each slide, with its comments and notes. Throws for damaged files.
 * @throws Locked if the password is missing or wrong.
 */
export function readLegacySlides(
  stream: Uint8Array,
  { user, oldText }: { readonly user: Uint8Array | undefined; readonly oldText: Uint8Array | undefined },
  password: string | null,
): { readonly pages: readonly string[]; readonly held: () => number } {
  const file = Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength)
  if (file.length >= 2 && file.readUInt16LE(0) === OLD_CONTAINER)
    return { pages: [readOldText(oldText)], held: () => 0 }
  const { offsets, documentAt, encryptionId } = readPersistDirectory(file, user)
  const bytes = encryptionId === null ? file : decryptParts(file, offsets, encryptionId, password)
  const document = readRecord(bytes, documentAt)
  if (document === null) throw new Error('The presentation has no document')
  const lists = [...listRecords(document.data)].filter(({ type }) => type === SLIDE_LIST)
  const listed = (kind: number): ListedSlide[] =>
    lists.filter(({ instance }) => instance === kind).flatMap(({ data }) => readSlideList(data))
  const notes = new Map(listed(2).map((note) => [note.slideId, note]))
  const open = ({ persistId }: ListedSlide): Buffer =>
    readRecord(bytes, offsets.get(persistId) ?? -1)?.data ?? Buffer.alloc(0)
  const used = new Set<number>()
  const toText = (slide: ListedSlide): string => {
    // A file may list the same slide any number of times.
    const at = offsets.get(slide.persistId) ?? -1
    if (used.has(at)) return ''
    used.add(at)
    return extractTexts(open(slide), slide.outline).join('\n')
  }
  const pages = listed(0).map((slide) => {
    const atom = [...listRecords(open(slide))].find(({ type }) => type === SLIDE_ATOM)
    const note = atom && atom.data.length >= 20 ? notes.get(atom.data.readUInt32LE(16)) : undefined
    return [toText(slide), note === undefined ? '' : toText(note)].filter((text) => text !== '').join('\n\n')
  })
  return { pages, held: () => countSlideLetters(bytes) }
}

const SLIDE = 0x03ee
const DOCUMENT = 0x03e8

/** Counts the letters of the newest version of all slides, also of those that the last edit does not lead to. */
export function countSlideLetters(stream: Uint8Array): number {
  const bytes = Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength)
  let total = 0
  const count = (data: Buffer, depth: number): void => {
    for (const record of listRecords(data)) {
      if (isTextRecord(record)) total += estimateLetters(decode(record))
      else if (record.isContainer && depth < MAX_DEPTH) count(record.data, depth + 1)
    }
  }
  const newest = new Map<number, number>()
  for (const { type, data } of [...listRecords(bytes)].reverse())
    if (type === PERSIST_DIRECTORY) addOffsets(data, newest)
  const parts = [...new Set(newest.values())].map((at) => ({ at, record: readRecord(bytes, at) }))
  const masters = new Set<number | undefined>()
  // Records of a hostile file overlap.
  let left = 2 * bytes.length
  const listIn = (data: Buffer, instance: number): Buffer[] => {
    left -= data.length
    if (left < 0) return []
    const lists = [...listRecords(data)].filter((one) => one.type === SLIDE_LIST && one.instance === instance)
    return lists.map((one) => one.data)
  }
  for (const { record } of parts) {
    if (record?.type !== DOCUMENT) continue
    // A master of title slides is a slide, too.
    for (const list of listIn(record.data, 1))
      for (const { persistId } of readSlideList(list)) masters.add(newest.get(persistId))
    for (const list of listIn(record.data, 0)) count(list, 0)
  }
  for (const { at, record } of parts) {
    if (record?.type !== SLIDE || masters.has(at)) continue
    left -= record.data.length
    if (left >= 0) count(record.data, 0)
  }
  return total
}

/** Finds the newest version of each part. Saving appends parts and a directory of them (MS-PPT, 2.1.2). */
function readPersistDirectory(bytes: Buffer, currentUser: Uint8Array | undefined) {
  const offsets = new Map<number, number>()
  let documentId = -1
  let encryptionId: number | null = null
  let at =
    currentUser && currentUser.length >= USER_EDIT_AT + 4
      ? Buffer.from(currentUser).readUInt32LE(USER_EDIT_AT)
      : -1
  for (let edits = 0; edits < MAX_EDITS; edits++) {
    const edit = readRecord(bytes, at)
    if (edit?.type !== USER_EDIT || edit.data.length < 20) break
    if (documentId === -1) documentId = edit.data.readUInt32LE(16)
    if (edit.data.length >= ENCRYPTION_ID_AT + 4) encryptionId ??= edit.data.readUInt32LE(ENCRYPTION_ID_AT)
    const directory = readRecord(bytes, edit.data.readUInt32LE(12))
    if (directory?.type === PERSIST_DIRECTORY) addOffsets(directory.data, offsets)
    const before = edit.data.readUInt32LE(8)
    if (before === 0 || before >= at) break
    at = before
  }
  return { offsets, documentAt: offsets.get(documentId) ?? 0, encryptionId }
}

/** Decrypts the parts of a file (MS-PPT, 2.3.7). Each is a block with its own key. */
function decryptParts(
  file: Buffer,
  offsets: ReadonlyMap<number, number>,
  encryptionId: number,
  password: string | null,
): Buffer {
  const info = readRecord(file, offsets.get(encryptionId) ?? -1)
  if (info?.type !== ENCRYPTION) throw new Error('The presentation lacks its encryption header')
  const unlock = (candidate: string): DecryptBlock | null => unlockBlocks(info.data, candidate)
  const decrypt = tryPasswords(password, unlock, SLIDES_DEFAULT_PASSWORD)
  const plain = Buffer.from(file)
  // Parts of a real file do not overlap.
  let left = file.length
  for (const [id, at] of offsets) {
    if (id === encryptionId || at + RECORD_HEAD_BYTES > file.length) continue
    const head = decrypt(id, file.subarray(at, at + RECORD_HEAD_BYTES))
    const size = RECORD_HEAD_BYTES + Math.min(head.readUInt32LE(4), file.length)
    left -= size
    if (left < 0) break
    decrypt(id, file.subarray(at, at + size)).copy(plain, at)
  }
  return plain
}

function addOffsets(directory: Buffer, offsets: Map<number, number>): void {
  for (let at = 0; at + 4 <= directory.length; ) {
    const entry = directory.readUInt32LE(at)
    const count = entry >>> 20
    at += 4
    for (let n = 0; n < count && at + 4 <= directory.length; n++, at += 4) {
      const id = (entry & 0xfffff) + n
      if (!offsets.has(id)) offsets.set(id, directory.readUInt32LE(at))
    }
  }
}

function readSlideList(data: Buffer): ListedSlide[] {
  const slides: ListedSlide[] = []
  let isEmpty = false
  for (const record of listRecords(data)) {
    if (record.type === SLIDE_PERSIST && record.data.length >= 16)
      slides.push({
        persistId: record.data.readUInt32LE(0),
        slideId: record.data.readUInt32LE(12),
        outline: [],
      })
    else if (record.type === TEXT_HEADER) {
      // Each header stands for a text, even if no text follows.
      slides.at(-1)?.outline.push('')
      isEmpty = true
    } else if (isEmpty && isTextRecord(record)) {
      const outline = slides.at(-1)?.outline
      if (outline !== undefined) outline[outline.length - 1] = decode(record)
      isEmpty = false
    }
  }
  return slides
}

const isTextRecord = ({ type }: PptRecord): boolean => type === TEXT_CHARACTERS || type === TEXT_BYTES

/** Decodes a text. A carriage return ends a paragraph, and a vertical tab ends a line. Fields have an asterisk. */
const decode = ({ type, data }: PptRecord): string =>
  data
    .toString(type === TEXT_BYTES ? 'latin1' : 'utf16le')
    .replace(/[\r\v]/g, '\n')
    .replace(/\0/g, '')
    .trim()

function extractTexts(slide: Buffer, outline: readonly string[], depth = 0): string[] {
  const texts: string[] = []
  for (const record of listRecords(slide)) {
    if (isTextRecord(record)) texts.push(decode(record))
    else if (record.type === OUTLINE_REFERENCE && record.data.length >= 4)
      texts.push(outline[record.data.readInt32LE(0)] ?? '')
    else if (record.type === COMMENT) texts.push(readComment(record.data))
    else if (record.isContainer && depth < MAX_DEPTH)
      texts.push(...extractTexts(record.data, outline, depth + 1))
  }
  return texts.filter((text) => text !== '' && text !== '*')
}

/** Returns the words of a comment; its other strings name the author. */
const readComment = (data: Buffer): string => {
  const words = [...listRecords(data)].find(({ type, instance }) => type === STRING && instance === 1)
  return words === undefined ? '' : decode({ ...words, type: TEXT_CHARACTERS })
}
