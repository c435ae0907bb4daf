import { estimateLetters } from './held-text.ts'
import { assembleOldText, OLD_IDENTIFIER, OLD_LENGTHS_AT } from './legacy-word-old.ts'
import { listPieces, type Piece } from './legacy-word-pieces.ts'
import { listContinuedSections, listHiddenRuns, listParagraphs, type Run } from './legacy-word-runs.ts'
import { PageCollector } from './texts.ts'

/**
 * Reads the text of Word 6 to 2003 (MS-DOC). The usual library, word-extractor 1.0.4, loses the text of paragraphs with
 * optional hyphens, and does not find the ends of pages.
 */

// Places in the file information block (MS-DOC, 2.5).
const IDENTIFIER = 0xa5ec
const FLAGS_AT = 0x0a
const LENGTHS_AT = 0x4c
const PIECES_AT = 0x1a2
const INFORMATION_BYTES = 0x1aa
const HAS_TABLE_1 = 0x0200

/** Parts of the text, in the order of the file. `macro` is always empty. */
const PARTS = ['body', 'notes', 'headers', 'macro', 'comments', 'endnotes', 'boxes', 'headerBoxes'] as const

/** Streams of a document. */
export interface WordStreams {
  readonly main: Uint8Array
  readonly table0: Uint8Array | undefined
  readonly table1: Uint8Array | undefined
}

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The pages of a document. */
interface WordPages {
  readonly pages: readonly string[]
  /** Counts the letters that the file holds. */
  readonly held: () => number
}

/** Reads the pages of a document. Throws for damaged files. @throws Unreadable for old East Asian ones. */
export function readLegacyWord({ main: bytes, table0, table1 }: WordStreams): WordPages {
  const main = toBuffer(bytes)
  const identifier = main.readUInt16LE(0)
  if (identifier === OLD_IDENTIFIER) return arrangeParts(assembleOldText(main), main, OLD_LENGTHS_AT)
  if (main.length < INFORMATION_BYTES || identifier !== IDENTIFIER)
    throw new Error('The stream is no document of Word')
  const table = toBuffer(
    ((main.readUInt16LE(FLAGS_AT) & HAS_TABLE_1) !== 0 ? table1 : table0) ?? Buffer.alloc(0),
  )
  return arrangeParts(assembleText(main, table), main, LENGTHS_AT)
}

/** Arranges the parts of the text: headers first, and notes and comments behind the body. */
function arrangeParts(text: string, main: Buffer, lengthsAt: number): WordPages {
  const parts = new Map<(typeof PARTS)[number], string>()
  let from = 0
  for (const [n, part] of PARTS.entries()) {
    const length = Math.max(0, main.readInt32LE(lengthsAt + 4 * n))
    parts.set(part, toReadable(text.slice(from, from + length)))
    from += length
  }
  const pages = new PageCollector()
  const add = (part: (typeof PARTS)[number]): void => {
    for (const [n, page] of (parts.get(part) ?? '').split('\f').entries()) {
      if (n > 0) pages.endPage()
      pages.add(page)
    }
    pages.endLine()
  }
  // First, even and odd pages have separate headers, often with the same text. They include the footers.
  pages.add([...new Set((parts.get('headers') ?? '').split('\n'))].join('\n').trim())
  pages.endLine()
  pages.endLead()
  for (const part of ['body', 'boxes', 'notes', 'endnotes', 'comments', 'headerBoxes'] as const) add(part)
  return { pages: pages.end(), held: () => countHeld(text, from) }
}

/** Counts the letters of a text without the instructions of fields, and the characters that the file lacks. */
function countHeld(text: string, claimed: number): number {
  const [start, ...fields] = text.split(FIELD_BEGIN)
  const results = fields.map((field) => field.slice(field.split(FIELD_SEPARATOR, 1)[0]!.length))
  return estimateLetters([start, ...results].join('')) + Math.max(0, claimed - text.length)
}

/** Joins the pieces. Hidden characters become NUL, so that all others keep their places. */
function assembleText(main: Buffer, table: Buffer): string {
  const hidden = listHiddenRuns(main, table)
  const { rowEnds, pageStarts } = listParagraphs(main, table)
  const western = new TextDecoder('windows-1252')
  const breaks = listContinuedSections(main, table)
  const starts: number[] = []
  const texts: string[] = []
  let length = 0
  for (const piece of listPieces(main, table, main.readUInt32LE(PIECES_AT))) {
    const bytes = main.subarray(piece.at, piece.at + piece.length * piece.width)
    let text = (piece.width === 2 ? bytes.toString('utf16le') : western.decode(bytes)).padEnd(
      piece.length,
      '\0',
    )
    text = replaceRuns(text, piece, hidden, (found) => '\0'.repeat(found.length))
    text = replaceRuns(text, piece, rowEnds, (found) => found.replaceAll('\x07', '\n'))
    for (const { from } of findRuns(piece, pageStarts))
      if (from >= piece.at) starts.push(length + Math.floor((from - piece.at) / piece.width))
    texts.push(text)
    length += piece.length
  }
  return markPages(texts.join(''), breaks, starts)
}

/** Replaces form feeds that end no page, and the paragraph ends before those that begin one. */
function markPages(text: string, continued: ReadonlySet<number>, starts: readonly number[]): string {
  const changes = new Map<number, string>()
  for (const at of continued) if (text[at - 1] === '\f') changes.set(at - 1, '\n')
  for (const at of starts) if (text[at - 1] === '\r') changes.set(at - 1, '\f')
  const pieces: string[] = []
  let from = 0
  for (const [at, sign] of [...changes].sort(([a], [b]) => a - b)) {
    pieces.push(text.slice(from, at), sign)
    from = at + 1
  }
  return pieces.join('') + text.slice(from)
}

/** Finds the runs that overlap a piece. */
function* findRuns({ at, length, width }: Piece, runs: readonly Run[]): Generator<Run> {
  let [low, high] = [0, runs.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (runs[middle]!.to <= at) low = middle + 1
    else high = middle
  }
  for (let n = low; n < runs.length && runs[n]!.from < at + length * width; n++) yield runs[n]!
}

/** Replaces the characters of runs by as many others. */
function replaceRuns(
  text: string,
  piece: Piece,
  runs: readonly Run[],
  replace: (found: string) => string,
): string {
  const parts: string[] = []
  let done = 0
  for (const { from, to } of findRuns(piece, runs)) {
    const start = Math.max(done, Math.floor((from - piece.at) / piece.width))
    const end = Math.min(piece.length, Math.ceil((to - piece.at) / piece.width))
    if (end <= start) continue
    parts.push(text.slice(done, start), replace(text.slice(start, end)))
    done = end
  }
  return parts.join('') + text.slice(done)
}

const SIGNS: Readonly<Record<string, string>> = {
  '\x07': '\t',
  '\t': '\t',
  '\n': '\n',
  '\v': '\n',
  '\f': '\f',
  '\r': '\n',
  '\x0e': '\n',
  '\x1e': '-',
}
const [FIELD_BEGIN, FIELD_SEPARATOR, FIELD_END] = ['\x13', '\x14', '\x15'] as const

/** Removes the instructions of fields, and replaces control characters (MS-DOC, 2.4.1). */
function toReadable(text: string): string {
  // The instructions of a field precede its result. True for each open field whose result has not begun.
  const fields: boolean[] = []
  let instructions = 0
  const endInstructions = (): void => {
    if (fields.at(-1) !== true) return
    fields[fields.length - 1] = false
    instructions--
  }
  return text.replace(/\p{Cc}|\P{Cc}+/gu, (found) => {
    if (found === FIELD_BEGIN) {
      fields.push(true)
      instructions++
    } else if (found === FIELD_SEPARATOR) endInstructions()
    else if (found === FIELD_END) {
      endInstructions()
      fields.pop()
    } else if (instructions === 0) return found < ' ' ? (SIGNS[found] ?? '') : found
    return ''
  })
}
