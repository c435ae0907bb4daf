import { MAX_CHARACTERS } from '../texts.ts'

/** A document whose pages are texts. */
export interface Texts {
  readonly pageCount: number
  /** The text of a page, from 1. @throws Unreadable. */
  text(page: number): string | Promise<string>
}

/** Pages that are all there. Without any, the document is one empty page. */
export function textsOf(pages: readonly string[]): Texts {
  return { pageCount: Math.max(1, pages.length), text: (page) => pages[page - 1] ?? '' }
}

/** Collects text, page by page, no more of each than is kept. */
export class Pages {
  #pages: string[] = []
  #page = ''
  // To look at the end of the page itself would copy all of it, once for each line.
  #isLineEnd = true

  add(text: string): void {
    // One more character is what says that there was more.
    if (this.#page.length > MAX_CHARACTERS || text === '') return
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
