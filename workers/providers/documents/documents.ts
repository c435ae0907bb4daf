/** Reads documents page by page, in several child processes concurrently. */
import {
  type AttachmentInfo,
  AttachmentUnreadable,
  type PageReader,
  type PageResult,
} from '../../../tasks/context.ts'
import { createUnreadPage } from '../../../tasks/documents/limits.ts'
import { ChildLost, type Children, type Limits } from '../../children/ports.ts'
import type { ReadPage } from '../../children/work.ts'
import { readPageByModel } from './model-page.ts'
import {
  type DocumentOptions,
  type ExtraOptions,
  type OpenedChild,
  OpenedChildren,
} from './opened-children.ts'

// Minimum batch of pages with a text layer: transferring a single page costs a third of the time to read it.
const MIN_BATCH = 4
// After this many lost children the other pages are skipped: each loss may have cost half a minute of CPU.
const MAX_LOST_CHILDREN = 20

interface RequestedPage {
  readonly page: number
  /** True if a batch with this page lost its child: the page is now read by itself. */
  readonly isSuspect?: boolean
  resolve(page: PageResult): void
  reject(error: unknown): void
}

/**
 * Opens a document. A page that takes too long or crashes its child twice is unread, with the reason; other pages are
 * not affected. A document that cannot be opened has one unread page.
 */
export async function openDocument(
  children: Children,
  load: () => Promise<Uint8Array>,
  options: DocumentOptions,
): Promise<PageReader> {
  const reader = new DocumentReader(children, load, options)
  const unread = await reader.open()
  if (unread === null) return reader
  return {
    pageCount: 1,
    unpackedBytes: 0,
    cpuMs: reader.cpuMs,
    isLocked: false,
    encoding: null,
    attachments: [],
    isFast: false,
    read: async () => unread,
    readAttachment: () => {
      throw new RangeError('A document that cannot be opened has no attachments')
    },
    close: async () => {},
  }
}

class DocumentReader implements PageReader {
  pageCount = 0
  unpackedBytes = 0
  isLocked = false
  encoding: string | null = null
  attachments: readonly AttachmentInfo[] = []
  // True if the last page read had a text layer: the next ones probably have one, too.
  isFast = false
  readonly #children: OpenedChildren
  readonly #limits: Limits
  readonly #vision: DocumentOptions['vision']
  readonly #starts: DocumentOptions['starts']
  readonly #closing = new AbortController()
  readonly #signal: AbortSignal
  readonly #waiting: RequestedPage[] = []
  #isScheduled = false
  // Time that the first child took to open the document, and total reading time of all children, in ms.
  #openingMs = 0
  #readingMs = 0
  #growing: NodeJS.Timeout | undefined
  // Number of children lost while reading pages.
  #lost = 0

  constructor(children: Children, load: () => Promise<Uint8Array>, options: DocumentOptions) {
    this.#signal = AbortSignal.any([options.signal, this.#closing.signal])
    this.#children = new OpenedChildren(children, load, options, this.#signal)
    this.#limits = this.#children.limits
    this.#vision = options.vision
    this.#starts = options.starts
  }

  /** Opens the document. Returns null, or an unread page if the document cannot be opened. */
  async open(): Promise<PageResult | null> {
    try {
      const child = await this.#children.openNext()
      this.pageCount = child.pageCount
      this.unpackedBytes = child.unpackedBytes
      this.isLocked = child.isLocked
      this.encoding = child.encoding
      this.attachments = child.attachments
      this.#openingMs = child.openingMs
      this.#children.keep(child)
      return null
    } catch (error) {
      if (error instanceof ChildLost) return createLostPage('Opening the document', error, this.#limits)
      throw error
    }
  }

  get cpuMs(): number {
    return this.#children.cpuMs
  }

  read(page: number): Promise<PageResult> {
    if (!(Number.isInteger(page) && page >= 1 && page <= this.pageCount))
      return Promise.reject(new RangeError(`No page ${page} of ${this.pageCount}`))
    if (this.#signal.aborted) return Promise.reject(this.#signal.reason)
    if (this.#lost >= MAX_LOST_CHILDREN) return Promise.resolve(createUnreadPage(SKIPPED_REASON))
    const { promise, resolve, reject } = Promise.withResolvers<PageResult>()
    this.#waiting.push({ page, resolve, reject })
    // Waits for the other pages that the caller requests in the same turn of the event loop.
    if (!this.#isScheduled) setImmediate(() => this.#dispatch())
    this.#isScheduled = true
    return promise
  }

  async *readAttachment(index: number): AsyncGenerator<Uint8Array, void> {
    const child = this.#children.takeIdle() ?? (await this.#addChild())
    let isWhole = false
    try {
      for (let at = 0; !isWhole; ) {
        const piece = await child.lease.ask('document.attachment', { index, at }, this.#limits)
        isWhole = piece.length === 0
        if (!isWhole) yield piece
        at += piece.length
      }
    } catch (error) {
      if (!(error instanceof ChildLost)) throw error
      throw new AttachmentUnreadable(`Unpacking the attachment ${error.reason(this.#limits)}`, {
        cause: error,
      })
    } finally {
      // Keep the child for the next attachment, which also needs the open document.
      if (isWhole) this.#children.keepUnlessDue(child)
      else this.#children.release(child)
      this.#dispatch()
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#growing)
    this.#children.releaseIdle()
    this.#closing.abort(new Error('The document was closed'))
    for (const requested of this.#waiting.splice(0)) requested.reject(this.#signal.reason)
  }

  /** Gives waiting pages to idle children, and adds a child if that pays off. */
  #dispatch(): void {
    this.#isScheduled = false
    clearTimeout(this.#growing)
    while (this.#waiting.length > 0 && this.#children.hasIdle) {
      void this.#readBatch(this.#children.takeIdle()!, this.#waiting.splice(0, this.#batchSize()))
    }
    const { size, maxSize } = this.#children
    if (this.#waiting.length === 0 || size >= maxSize) return
    if (size === 0 || this.#paysOff) return void this.#grow()
    // `#readingMs` excludes running batches. If they still run at the timeout, reading has reached the opening time.
    this.#growing = setTimeout(() => {
      this.#readingMs = this.#openingMs
      void this.#grow()
    }, this.#openingMs - this.#readingMs)
  }

  /** True once reading has taken at least the opening time. Until then, opening a second child costs more than it saves. */
  get #paysOff(): boolean {
    return this.#readingMs >= this.#openingMs
  }

  /** Returns the number of waiting pages for the next child. */
  #batchSize(): number {
    const shares = this.#paysOff ? this.#children.maxSize : this.#children.size
    const size = Math.max(MIN_BATCH, Math.ceil(this.#waiting.length / shares))
    const suspect = this.#waiting.slice(0, size).findIndex(({ isSuspect }) => isSuspect)
    if (!this.isFast || suspect === 0) return 1
    return suspect === -1 ? size : suspect
  }

  async #addChild(): Promise<OpenedChild> {
    try {
      return await this.#children.openNext()
    } catch (error) {
      this.#dispatchIfNone()
      throw error
    }
  }

  /** Adds a child for the waiting pages. Waits for the first child, but adds others only if they are free. */
  async #grow(): Promise<void> {
    try {
      const child = await this.#children.openNext({ ifFree: this.#children.size > 0 })
      if (child === null) return this.#dispatchIfNone()
      this.#children.keep(child)
      this.#dispatch()
    } catch (error) {
      // Other children continue. Without other children, the waiting pages report the error.
      if (this.#children.size > 0) return
      for (const requested of this.#waiting.splice(0)) {
        if (error instanceof ChildLost)
          requested.resolve(createLostPage('Opening the document', error, this.#limits))
        else requested.reject(error)
      }
    }
  }

  /**
   * Dispatches after adding a child failed, if all other children were lost meanwhile: waiting pages need a first child
   * again.
   */
  #dispatchIfNone(): void {
    if (this.#children.size === 0) this.#dispatch()
  }

  async #readBatch(child: OpenedChild, batch: readonly RequestedPage[]): Promise<void> {
    const since = performance.now()
    try {
      const pages = await this.#children.read(
        child.lease,
        batch.map(({ page }) => page),
      )
      this.#readingMs += performance.now() - since
      for (const [i, page] of pages.entries()) void this.#complete(page, batch[i]!)
      this.#waiting.unshift(...batch.slice(pages.length))
      this.isFast = pages.at(-1)?.method === 'text_layer'
      this.#children.keepUnlessDue(child)
    } catch (error) {
      this.#children.release(child)
      if (error instanceof ChildLost) this.#onLost(error, batch)
      else for (const requested of batch) requested.reject(error)
    }
    this.#dispatch()
  }

  /** Queues each page of a lost batch to be read by itself; retries or gives up a single page. */
  #onLost(error: ChildLost, batch: readonly RequestedPage[]): void {
    this.#lost++
    const [single] = batch
    if (batch.length > 1) this.#waiting.unshift(...batch.map((one) => ({ ...one, isSuspect: true })))
    else if (error.isOverTime) single!.resolve(createLostPage('Reading the page', error, this.#limits))
    // PDFium, or state left by earlier pages, may have caused the crash.
    else void this.#readSeparately(single!, { withoutPdfium: true })
  }

  /** Reads a page in a new child; after a crash, again without PDFium. */
  async #readSeparately(requested: RequestedPage, options: ExtraOptions): Promise<void> {
    try {
      const { lease } = await this.#children.openExtra(options)
      const [page] = await this.#children.read(lease, [requested.page]).finally(() => lease.release())
      await this.#complete(page!, requested)
    } catch (error) {
      if (!(error instanceof ChildLost)) requested.reject(error)
      else if (options.withoutPdfium !== true && !error.isOverTime)
        await this.#readSeparately(requested, { ...options, withoutPdfium: true })
      else requested.resolve(createLostPage('Reading the page', error, this.#limits))
    }
  }

  /** Resolves a page. If the page needs the model and the model fails, local OCR reads the page. */
  async #complete({ forModel = false, ...page }: ReadPage, requested: RequestedPage): Promise<void> {
    if (!forModel) return requested.resolve(page)
    try {
      const byModel = await readPageByModel(page, this.#vision, this.#signal, this.#starts)
      if (byModel !== null) return requested.resolve(byModel)
      const { image } = page
      const resolve = (read: PageResult): void => requested.resolve({ ...read, image })
      await this.#readSeparately({ ...requested, resolve }, { sight: 'local' })
    } catch (error) {
      requested.reject(error)
    }
  }
}

const SKIPPED_REASON = `The page was skipped because ${MAX_LOST_CHILDREN} other pages could not be read`

const createLostPage = (what: string, error: ChildLost, limits: Limits): PageResult =>
  createUnreadPage(`${what} ${error.reason(limits)}`)
