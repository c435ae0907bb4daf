/** Reads documents page by page in child processes, several at once. */
import type { AttachmentInfo, PageReader, PageResult } from '../../../tasks/context.ts'
import { unreadPage } from '../../../tasks/documents/limits.ts'
import { ChildLost, type Children, type Limits } from '../../children/ports.ts'
import type { ReadPage, Sight } from '../../children/work.ts'
import { readByModel } from './model-page.ts'
import { type DocumentOptions, type OpenedChild, OpenedChildren } from './opened-children.ts'

// At least this many pages with a text layer go to a child together: handing one over takes a third of its reading.
const MIN_BATCH = 4
// After a document has cost this many children, its other pages are skipped: each may have cost half a minute of CPU.
const MAX_LOST = 20

interface RequestedPage {
  readonly page: number
  /** A child was lost over it or another page that was read together with it: now it is read by itself. */
  readonly isSuspect?: boolean
  resolve(page: PageResult): void
  reject(error: unknown): void
}

/**
 * Opens a document. A page that takes too long, or that crashes its child twice, is unread, with the reason, and the
 * others are read. A document that cannot be opened has one unread page.
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
    attachments: [],
    isFast: false,
    read: async () => unread,
    attachment: () => {
      throw new RangeError('A document that cannot be opened has no attachments')
    },
    close: async () => {},
  }
}

class DocumentReader implements PageReader {
  pageCount = 0
  unpackedBytes = 0
  isLocked = false
  attachments: readonly AttachmentInfo[] = []
  // The last page read had a text layer: then the next ones may have one, too.
  isFast = false
  readonly #children: OpenedChildren
  readonly #limits: Limits
  readonly #vision: DocumentOptions['vision']
  readonly #closing = new AbortController()
  readonly #signal: AbortSignal
  readonly #waiting: RequestedPage[] = []
  #isScheduled = false
  // How long its first child took to open it, and how long its children have read.
  #openingMs = 0
  #readingMs = 0
  #growing: NodeJS.Timeout | undefined
  // How many children its pages have cost.
  #lost = 0

  constructor(children: Children, load: () => Promise<Uint8Array>, options: DocumentOptions) {
    this.#signal = AbortSignal.any([options.signal, this.#closing.signal])
    this.#children = new OpenedChildren(children, load, options, this.#signal)
    this.#limits = this.#children.limits
    this.#vision = options.vision
  }

  /** Null when it is open, or else its only, unread page. */
  async open(): Promise<PageResult | null> {
    try {
      const child = await this.#children.add()
      this.pageCount = child.pageCount
      this.unpackedBytes = child.unpackedBytes
      this.isLocked = child.isLocked
      this.attachments = child.attachments
      this.#openingMs = child.openingMs
      this.#children.keep(child)
      return null
    } catch (error) {
      if (error instanceof ChildLost) return givenUp('Opening the document', error, this.#limits)
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
    if (this.#lost >= MAX_LOST) return Promise.resolve(unreadPage(LEFT_OUT))
    const { promise, resolve, reject } = Promise.withResolvers<PageResult>()
    this.#waiting.push({ page, resolve, reject })
    // The other pages that are requested together come later in this turn.
    if (!this.#isScheduled) setImmediate(() => this.#dispatch())
    this.#isScheduled = true
    return promise
  }

  async *attachment(index: number): AsyncGenerator<Uint8Array, void> {
    const child = this.#children.takeIdle() ?? (await this.#another())
    let isWhole = false
    try {
      for (let at = 0; !isWhole; ) {
        const piece = await child.lease.ask('document.attachment', { index, at }, this.#limits)
        isWhole = piece.length === 0
        if (!isWhole) yield piece
        at += piece.length
      }
    } finally {
      // The next attachment needs the document open, too.
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

  /** Gives the waiting pages to the children that are idle, and sees to another child if that is worth its while. */
  #dispatch(): void {
    this.#isScheduled = false
    clearTimeout(this.#growing)
    while (this.#waiting.length > 0 && this.#children.hasIdle) {
      void this.#readBatch(this.#children.takeIdle()!, this.#waiting.splice(0, this.#batchSize()))
    }
    const { size, maxSize } = this.#children
    if (this.#waiting.length === 0 || size >= maxSize) return
    if (size === 0 || this.#isWorthMore) return void this.#grow()
    // What is being read does not count yet: if it takes until then, its pages have taken as long as the opening, too.
    this.#growing = setTimeout(() => {
      this.#readingMs = this.#openingMs
      void this.#grow()
    }, this.#openingMs - this.#readingMs)
  }

  /** Whether its pages have taken as long as its opening: what is read sooner needs no second child, which has to open it, too. */
  get #isWorthMore(): boolean {
    return this.#readingMs >= this.#openingMs
  }

  /** How many of the waiting pages go to a child next. */
  #batchSize(): number {
    const shares = this.#isWorthMore ? this.#children.maxSize : this.#children.size
    const size = Math.max(MIN_BATCH, Math.ceil(this.#waiting.length / shares))
    const suspect = this.#waiting.slice(0, size).findIndex(({ isSuspect }) => isSuspect)
    if (!this.isFast || suspect === 0) return 1
    return suspect === -1 ? size : suspect
  }

  /** A child more, for the caller. */
  async #another(): Promise<OpenedChild> {
    try {
      return await this.#children.add()
    } catch (error) {
      this.#dispatchIfNone()
      throw error
    }
  }

  /** Adds a child for the waiting pages: waits for the first one, takes others only if they are free. */
  async #grow(): Promise<void> {
    try {
      const child = await this.#children.add({ ifFree: this.#children.size > 0 })
      if (child === null) return this.#dispatchIfNone()
      this.#children.keep(child)
      this.#dispatch()
    } catch (error) {
      // Other children go on; if there are none, the waiting pages report the error.
      if (this.#children.size > 0) return
      for (const requested of this.#waiting.splice(0)) {
        if (error instanceof ChildLost)
          requested.resolve(givenUp('Opening the document', error, this.#limits))
        else requested.reject(error)
      }
    }
  }

  /** After a child that was counted did not come: when the others were lost meanwhile, the pages wait for a first one. */
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

  /** After a child was lost over a batch: each of its pages is then read by itself. */
  #onLost(error: ChildLost, batch: readonly RequestedPage[]): void {
    this.#lost++
    const [culprit] = batch
    if (batch.length > 1) this.#waiting.unshift(...batch.map((one) => ({ ...one, isSuspect: true })))
    else if (error.isSpent) culprit!.resolve(givenUp('Reading the page', error, this.#limits))
    // The crash may be due to PDFium, or to what earlier pages left behind.
    else void this.#readAlone(culprit!, { withoutPdfium: true })
  }

  /** Reads a page in a child of its own, and if that crashes, again without PDFium. */
  async #readAlone(requested: RequestedPage, how: { withoutPdfium: boolean; sight?: Sight }): Promise<void> {
    this.#children.withoutPdfium ||= how.withoutPdfium
    try {
      const { lease } = await this.#children.openAlone(how.sight)
      const [page] = await this.#children.read(lease, [requested.page]).finally(() => lease.release())
      await this.#complete(page!, requested)
    } catch (error) {
      if (!(error instanceof ChildLost)) requested.reject(error)
      else if (!how.withoutPdfium && !error.isSpent)
        await this.#readAlone(requested, { ...how, withoutPdfium: true })
      else requested.resolve(givenUp('Reading the page', error, this.#limits))
    }
  }

  /** Completes a page: if it needs a model, that reads it; if the model fails, the engine here does. */
  async #complete({ forModel = false, ...page }: ReadPage, requested: RequestedPage): Promise<void> {
    if (!forModel) return requested.resolve(page)
    try {
      const byModel = await readByModel(page, this.#vision, this.#signal)
      if (byModel !== null) return requested.resolve(byModel)
      const { image } = page
      const resolve = (read: PageResult): void => requested.resolve({ ...read, image })
      await this.#readAlone({ ...requested, resolve }, { withoutPdfium: false, sight: 'local' })
    } catch (error) {
      requested.reject(error)
    }
  }
}

const LEFT_OUT = `The page was skipped, because ${MAX_LOST} others of the document could not be read`

const givenUp = (what: string, error: ChildLost, limits: Limits): PageResult =>
  unreadPage(`${what} ${error.reason(limits)}`)
