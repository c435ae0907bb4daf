import type { PageReader, PageResult } from '../context.ts'
import type { Settings } from '../settings.ts'

/**
 * The longest time for one document, whose pages compete with those of others. Pages that are not read by then wait for
 * another extraction.
 */
export const DOCUMENT_MS = 24 * 3600_000

// A text layer is rarely larger than its file. Packed pages of print shrink to a fifth.
const TEXT_PER_BYTE = 20
const TEXT_BYTES = 2 ** 20
// A scanned page of 20 KB takes three seconds.
const CPU_MS_PER_BYTE = 0.2
const CPU_MS = 300_000

/**
 * What the pages of one document may cost together. Each page has limits of its own, but a small file may refer to the same
 * bytes from thousands of pages. Both limits grow with the document's unpacked bytes up to a setting.
 */
export class DocumentBudget {
  readonly #textBytes: number
  readonly #cpuMs: number
  readonly #pages: Pick<PageReader, 'cpuMs'>
  #storedBytes: number

  /** @param storedBytes the text of its pages that stay as they are. */
  constructor(
    settings: Pick<Settings, 'maxDocumentTextBytes' | 'maxDocumentCpuSeconds'>,
    pages: Pick<PageReader, 'unpackedBytes' | 'cpuMs'>,
    storedBytes: number,
  ) {
    const { unpackedBytes } = pages
    this.#textBytes = Math.min(settings.maxDocumentTextBytes, TEXT_BYTES + TEXT_PER_BYTE * unpackedBytes)
    this.#cpuMs = Math.min(settings.maxDocumentCpuSeconds * 1000, CPU_MS + CPU_MS_PER_BYTE * unpackedBytes)
    this.#pages = pages
    this.#storedBytes = storedBytes
  }

  /** The reason why no further page is read; null while the document is within its limits. */
  get exceeded(): string | null {
    if (this.#storedBytes > this.#textBytes)
      return `The document has more than ${this.#textBytes} bytes of text, which its size allows`
    if (this.#pages.cpuMs > this.#cpuMs)
      return `The document has taken more than ${Math.round(this.#cpuMs / 1000)} s of computing`
    return null
  }

  /** Counts a page that was read: its result, or an unread page if it is beyond the limit of text. */
  count(page: PageResult): PageResult {
    this.#storedBytes += Buffer.byteLength(page.text)
    return page.text !== '' && this.#storedBytes > this.#textBytes ? unreadPage(this.exceeded!) : page
  }
}

/** A page that is not read, with the reason. It is settled: only a forced extraction reads it again. */
export const unreadPage = (detail: string): PageResult => ({
  status: 'unread',
  method: 'none',
  model: null,
  detail,
  text: '',
  image: null,
  givenUp: true,
})
