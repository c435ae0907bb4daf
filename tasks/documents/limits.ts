import type { PageReader, PageResult } from '../context.ts'
import type { Settings } from '../platform/settings/settings.ts'

/**
 * Time limit for reading one document. It is long, because the pages compete with those of other documents. Another
 * extraction reads the remaining pages.
 */
export const DOCUMENT_TIMEOUT_MS = 24 * 3600_000

// Text is rarely larger than its file. In a compressed print file it is about five times as large.
const TEXT_BYTES_PER_FILE_BYTE = 20
const BASE_TEXT_BYTES = 2 ** 20
// OCR of a 20 KB page takes three seconds.
const CPU_MS_PER_FILE_BYTE = 0.2
const BASE_CPU_MS = 300_000

/**
 * Limits the total text, with its Markdown, and CPU time of one document. Pages have their own limits, but thousands of pages in a small
 * file may refer to the same bytes. Both limits grow with the document's unpacked size, up to a setting.
 */
export class DocumentBudget {
  readonly #textBytes: number
  readonly #cpuMs: number
  readonly #pages: Pick<PageReader, 'cpuMs'>
  #storedBytes: number

  /** @param storedBytes size of the text and Markdown of the stored pages that this extraction does not read again */
  constructor(
    settings: Pick<Settings, 'maxDocumentTextBytes' | 'maxDocumentCpuSeconds'>,
    pages: Pick<PageReader, 'unpackedBytes' | 'cpuMs'>,
    storedBytes: number,
  ) {
    const { unpackedBytes } = pages
    this.#textBytes = Math.min(
      settings.maxDocumentTextBytes,
      BASE_TEXT_BYTES + TEXT_BYTES_PER_FILE_BYTE * unpackedBytes,
    )
    this.#cpuMs = Math.min(
      settings.maxDocumentCpuSeconds * 1000,
      BASE_CPU_MS + CPU_MS_PER_FILE_BYTE * unpackedBytes,
    )
    this.#pages = pages
    this.#storedBytes = storedBytes
  }

  /** Reason why no more pages are read; null while the document is within its limits. */
  get exceededReason(): string | null {
    if (this.#storedBytes > this.#textBytes)
      return `The document exceeds its limit of ${this.#textBytes} bytes of text`
    if (this.#pages.cpuMs > this.#cpuMs)
      return `The document exceeds its limit of ${Math.round(this.#cpuMs / 1000)} s of CPU time`
    return null
  }

  /**
   * Adds a page's text and Markdown to the total. Returns the page, or an unread page if its text exceeds the limit. A
   * page whose Markdown alone exceeds it keeps its text.
   */
  countPage(page: PageResult): PageResult {
    this.#storedBytes += Buffer.byteLength(page.text)
    if (page.text !== '' && this.#storedBytes > this.#textBytes) return createUnreadPage(this.exceededReason!)
    const markdownBytes = Buffer.byteLength(page.markdown ?? '')
    if (this.#storedBytes + markdownBytes > this.#textBytes) return { ...page, markdown: null }
    this.#storedBytes += markdownBytes
    return page
  }
}

/** Creates the result for a page that was given up, with the reason. Only a forced extraction reads it again. */
export const createUnreadPage = (detail: string): PageResult => ({
  status: 'unread',
  method: 'none',
  model: null,
  detail,
  text: '',
  image: null,
  isGivenUp: true,
})
