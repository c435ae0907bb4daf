import { MAX_CHARACTERS } from '../texts.ts'

/** A document whose pages are texts. */
export interface Texts {
  readonly pageCount: number
  /** The size of what is packed in the file; without it, the size of the file counts. */
  readonly unpackedBytes?: number
  /** The text of a page, from 1. @throws Unreadable. */
  text(page: number): string | Promise<string>
}

/** Pages that are all there. Without any, the document is one empty page. */
export function textsOf(pages: readonly string[], archive?: { readonly unpackedBytes: number }): Texts {
  return {
    pageCount: Math.max(1, pages.length),
    ...(archive && { unpackedBytes: archive.unpackedBytes }),
    text: (page) => pages[page - 1] ?? '',
  }
}

/** Collects text, page by page, no more of each than is kept. */
export class Pages {
  #pages: string[] = []
  #page = ''
  // To look at the end of the page itself would copy all of it, once for each line.
  #isLineEnd = true

  /** True if the page takes no more. It has one character more than is kept, which says that there was more. */
  get isFull(): boolean {
    return this.#page.length > MAX_CHARACTERS
  }

  add(text: string): void {
    if (this.isFull || text === '') return
    this.#page += text
    this.#isLineEnd = text.endsWith('\n')
  }

  /** Ends the line, unless it has just begun. */
  line(): void {
    if (!this.#isLineEnd) this.add('\n')
  }

  /** Ends the page, unless nothing is on it: writers mark the same end in several ways. */
  break(): void {
    const page = tidied(this.#page)
    if (page !== '') this.#pages.push(page)
    this.#page = ''
    this.#isLineEnd = true
  }

  /** All pages; the last one ends here. */
  end(): readonly string[] {
    this.break()
    return this.#pages
  }
}

// Cells and paragraphs end with white space, whatever follows.
const tidied = (text: string): string =>
  text
    .replace(/(?<! ) +\t/g, '\t')
    .replace(/(?<![ \t])[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
