import { decodeText } from '../../../tasks/formats/decode.ts'
import type { ZipEntry } from '../../../tasks/formats/zip.ts'
import { MAX_CHARACTERS } from '../documents/texts.ts'
import { Unreadable } from '../images/images.ts'
import { MarkdownBuilder } from '../markdown/builder.ts'
import type { Holdings } from './held.ts'

/** A document with text pages. */
export interface PagedText {
  readonly pageCount: number
  /** Unpacked size of an archive; absent for other files, whose own size counts. */
  readonly unpackedBytes?: number
  /** The encoding of a text file, as in a `charset` parameter; absent for other files. */
  readonly encoding?: string
  /** True if the document has pictures, whether or not they can be read. */
  readonly hasPictures?: boolean
  /** Returns the pictures of a page. */
  pictures?(page: number): readonly ZipEntry[]
  /** Reads a page, counted from 1. @throws Unreadable. */
  read(page: number): PageText | Promise<PageText>
  /** Returns the reason why the text of a page lacks content; null if it lacks none. */
  detail?(page: number): string | null
  /** Returns a title that the reader adds to a page, such as the name of a sheet. */
  title?(page: number): string
  /** The letters that the file holds, counted without this reader; absent if nothing tells. */
  readonly holdings?: Holdings
}

/** A page's text, and its Markdown; null if it has no headings, lists or tables, or these are not known. */
export interface PageText {
  readonly text: string
  readonly markdown: string | null
}

// Decoding this many bytes takes less than a second.
export const MAX_TEXT_BYTES = 32 * 2 ** 20

/** The encodings that the caller and the file name; null without one. */
export interface TextHints {
  readonly given: string | null
  readonly declared?: string | null
}

export interface TextFile {
  readonly text: string
  readonly encoding: string
  /** True if the file is longer than what is read of it. */
  readonly isCut: boolean
}

/** Decodes a text file. Line ends become line feeds. @throws Unreadable for an unknown encoding. */
export function readTextFile(bytes: Uint8Array, hints: TextHints): TextFile {
  const decoded = decodeText(bytes.subarray(0, MAX_TEXT_BYTES), hints)
  if (decoded === null)
    throw new Unreadable(
      hints.given === null
        ? 'The encoding of the text is unknown; extract it again with `encoding`, for example `windows-1251`'
        : `The text is not in the encoding ${hints.given}`,
    )
  // DOS ends a text with this control character.
  const text = (decoded.text.endsWith('\u001a') ? decoded.text.slice(0, -1) : decoded.text).replace(
    /\r\n?/g,
    '\n',
  )
  return { text, encoding: decoded.encoding, isCut: bytes.length > MAX_TEXT_BYTES }
}

/** The page of each picture, by its path in lower case. */
export type PictureMap = ReadonlyMap<string, number>

/** Wraps pages that are already in memory. Without pages, the document is one empty page. */
export function createPagedText(
  pages: readonly string[],
  archive?: { describePages(count: number, pageOf?: PictureMap): Omit<PagedText, 'pageCount' | 'read'> },
  pageOf?: PictureMap,
  markdown: readonly (string | null)[] = [],
): PagedText {
  const pageCount = Math.max(1, pages.length)
  return {
    pageCount,
    ...archive?.describePages(pageCount, pageOf),
    read: (page) => ({ text: pages[page - 1] ?? '', markdown: markdown[page - 1] ?? null }),
  }
}

/** Collects text and structure page by page, and drops what exceeds a page's character limit. */
export class PageCollector {
  /** Receives the structure of the page. */
  readonly structure = new MarkdownBuilder()
  /** The Markdown of the pages that have ended; null for a page without structure. */
  readonly markdown: (string | null)[] = []
  #pages: string[] = []
  #page = ''
  // Cached: reading the end of the page string would flatten the string, and thus copy the whole page for each line.
  #isLineEnd = true
  #isCounted = false
  // Characters of the text before the body, such as headers. It never makes a page of its own.
  #lead = 0

  /** True if the page accepts no more text. It then exceeds the limit, so that `cleanText` reports the truncation. */
  get isFull(): boolean {
    return this.#page.length > MAX_CHARACTERS
  }

  /** Adds text. `marked` is the text that its Markdown has in its place. */
  add(text: string, marked: string = text): void {
    if (this.isFull) return
    this.structure.add(marked)
    if (text === '') return
    this.#page += text
    this.#isLineEnd = text.endsWith('\n')
  }

  /** Adds the name of a sheet, which is the heading of its table. */
  addSheetTitle(name: string): void {
    this.structure.begin({ kind: 'heading', level: 2 })
    this.add(`${name}\n`)
  }

  /** Ends a line within a paragraph. */
  addBreak(): void {
    this.add('\n', '')
    this.structure.addBreak()
  }

  /** Begins a page that counts even if it stays empty. */
  beginPage(): void {
    this.#keepPage()
    this.#isCounted = true
  }

  /** Ends the text before the body, such as headers: it belongs to the first page. */
  endLead(): void {
    this.#lead = this.#page.length
  }

  /** Ends the current line, unless it is empty. */
  endLine(): void {
    if (!this.#isLineEnd) this.add('\n')
  }

  /** Ends the current page, unless it is empty: writers mark the same break in several ways. */
  endPage(): void {
    if (this.#lead > 0 && this.#page.slice(this.#lead).trim() === '') return
    this.#lead = 0
    this.#keepPage()
  }

  #keepPage(): void {
    const page = removeExtraSpace(this.#page)
    const markdown = this.structure.end()
    if (page !== '' || this.#isCounted) {
      this.#pages.push(page)
      this.markdown.push(markdown)
    }
    this.#isCounted = false
    this.#page = ''
    this.#isLineEnd = true
  }

  /** Ends the last page and returns all pages. */
  end(): readonly string[] {
    this.#keepPage()
    return this.#pages
  }
}

// Removes redundant white space at the ends of cells and paragraphs.
const removeExtraSpace = (text: string): string =>
  text
    .replace(/(?<! ) +\t/g, '\t')
    .replace(/(?<![ \t])[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

/** Returns a number with 15 significant digits, and any other text unchanged. */
export function toShownNumber(value: number | string): string {
  const number = Number(value)
  return value === '' || !Number.isFinite(number)
    ? String(value).trim()
    : String(Number(number.toPrecision(15)))
}
