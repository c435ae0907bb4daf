import { availableParallelism } from 'node:os'
import type { AttachmentInfo, OpenPagesOptions } from '../../../tasks/context.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../../children/ports.ts'
import { type OcrMode, type ReadPage, sendBytes, type Work } from '../../children/work.ts'
import type { ModelStarts } from '../ai/ai-calls.ts'

export interface DocumentOptions extends OpenPagesOptions {
  readonly vision: Settings['visionProvider']
  /** Rates of the models that read pages; default none. */
  readonly starts?: ModelStarts
  /** False to ignore pictures on pages with text; default true. */
  readonly withPictures?: boolean
  readonly maxPages: number
  /** Limits for opening the document, and for each page. */
  readonly limits?: Limits
  /**
   * Time that the document keeps its children while others wait, in ms. Reopening costs as much as one or two pages.
   */
  readonly sliceMs?: number
}

// A dense page takes 10 s of CPU time, the worst ordinary page 20 s.
export const DOCUMENT_LIMITS: Limits = { cpuMs: 28_000 }
// Time in ms that a document keeps a child while others wait. If `SLICE_PER_OPENING` times the opening time is longer,
// that time counts.
const SLICE_MS = 2000
const SLICE_PER_OPENING = 10
// A child waits this long for the next pages, which are requested once the previous ones are stored.
const IDLE_MS = 250

const ANIMATED_TYPES = new Set(['image/gif', 'image/webp'])

/** A child with the document open. */
export interface OpenedChild {
  readonly lease: ChildLease
  readonly pageCount: number
  readonly unpackedBytes: number
  readonly isLocked: boolean
  readonly encoding: string | null
  readonly attachments: readonly AttachmentInfo[]
  /** Start of the opening, by `performance.now()`. */
  readonly since: number
  /** Duration of the opening, in ms. */
  readonly openingMs: number
}

// More than one, because a child may also be killed from outside, for example when memory is short.
const MAX_OPENING_RETRIES = 2

export interface ExtraOptions {
  readonly sight?: OcrMode
  /** True after PDFium may have crashed on a page: OCR reads the drawing of pdfjs. */
  readonly withoutPdfium?: boolean
}

/**
 * Child processes that have one document open. The reader adds a child when parallel reading pays off. Idle children are
 * kept for the next pages, and released when none come or others wait.
 */
export class OpenedChildren {
  /** Children in use, idle or still being leased. */
  size = 0
  /** CPU time of the document in all its children, in ms. */
  cpuMs = 0
  readonly limits: Limits
  readonly #children: Children
  readonly #load: () => Promise<Uint8Array>
  readonly #options: DocumentOptions
  readonly #sight: OcrMode
  readonly #signal: AbortSignal
  readonly #idle = new Map<OpenedChild, NodeJS.Timeout>()
  // True once opening the document has crashed a child.
  #withoutPdfium = false
  // A weak reference, so that the bytes stay cached only while memory allows. Several children may open the document in
  // succession.
  #bytes: WeakRef<Uint8Array> | null = null

  /** @param signal aborts all opening and reading. */
  constructor(
    children: Children,
    load: () => Promise<Uint8Array>,
    options: DocumentOptions,
    signal: AbortSignal,
  ) {
    this.#children = children
    this.#load = load
    this.#options = options
    this.#signal = signal
    this.limits = options.limits ?? DOCUMENT_LIMITS
    const { vision } = options
    this.#sight = vision === 'none' ? 'none' : vision === 'tesseract' ? 'local' : 'model'
  }

  /**
   * Returns the maximum number of children. Each frame of an animation is drawn over all earlier ones: two children
   * would both draw all frames.
   */
  get maxSize(): number {
    return this.#isAnimated ? 1 : availableParallelism()
  }

  get hasIdle(): boolean {
    return this.#idle.size > 0
  }

  /** Hands an idle child to the caller; null if none is idle. */
  takeIdle(): OpenedChild | null {
    const [child, timer] = [...this.#idle].at(-1) ?? []
    if (child === undefined) return null
    clearTimeout(timer)
    this.#idle.delete(child)
    return child
  }

  /**
   * Opens the document in another child for the caller. Returns null if `ifFree` is true and no child is free. @throws
   * the same errors as `openExtra`.
   */
  async openNext(): Promise<OpenedChild>
  async openNext(options: { readonly ifFree: boolean }): Promise<OpenedChild | null>
  async openNext({ ifFree } = { ifFree: false }): Promise<OpenedChild | null> {
    this.size++
    let child: OpenedChild | null = null
    try {
      const lease = ifFree
        ? await this.#children.lease({ signal: this.#signal, ifFree })
        : await this.#lease()
      child = lease && (await this.#openIn(lease, this.#sight))
    } finally {
      if (child === null) this.size--
    }
    return child
  }

  /**
   * Opens the document in a child that does not count towards `size`. The caller releases its lease.
   * @throws ChildLost if the document can't be opened.
   */
  async openExtra({
    sight = this.#sight,
    withoutPdfium = this.#withoutPdfium,
  }: ExtraOptions): Promise<OpenedChild> {
    return this.#openIn(await this.#lease(), sight, withoutPdfium)
  }

  /** Reads pages in a child. @throws ChildLost. */
  async read(lease: ChildLease, pages: readonly number[]): Promise<readonly ReadPage[]> {
    try {
      const read = await lease.ask('document.read', pages, this.limits)
      this.cpuMs += read.cpuMs
      return read.pages
    } catch (error) {
      this.#countLoss(error)
      throw error
    }
  }

  /** Adds the CPU limit to `cpuMs` for a child that exceeded it: a killed child reports no usage. */
  #countLoss(error: unknown): void {
    if (error instanceof ChildLost && error.lossReason === 'cpu') this.cpuMs += this.limits.cpuMs
  }

  /** Keeps a child idle for the next pages. */
  keep(child: OpenedChild): void {
    const idleMs = Math.max(IDLE_MS, child.openingMs)
    this.#idle.set(
      child,
      setTimeout(() => this.release(child), idleMs),
    )
  }

  /** Keeps a child, unless others have waited long enough for it. */
  keepUnlessDue(child: OpenedChild): void {
    if (this.#isDue(child)) this.release(child)
    else this.keep(child)
  }

  release(child: OpenedChild): void {
    clearTimeout(this.#idle.get(child))
    this.#idle.delete(child)
    this.size--
    child.lease.release()
  }

  releaseIdle(): void {
    for (const child of [...this.#idle.keys()]) this.release(child)
  }

  get #isAnimated(): boolean {
    return ANIMATED_TYPES.has(this.#options.mediaType)
  }

  #isDue({ lease, since, openingMs }: OpenedChild): boolean {
    const sliceMs = this.#options.sliceMs ?? Math.max(SLICE_MS, SLICE_PER_OPENING * openingMs)
    return lease.shouldRelease && !this.#isAnimated && performance.now() - since > sliceMs
  }

  #lease(): Promise<ChildLease> {
    return this.#children.lease({ signal: this.#signal })
  }

  /** Opens the document in a child; after a crash, in another one without PDFium, at most twice. */
  async #openIn(
    lease: ChildLease,
    sight: OcrMode,
    withoutPdfium = this.#withoutPdfium,
    crashes = 0,
  ): Promise<OpenedChild> {
    const since = performance.now()
    try {
      await sendBytes(lease, await this.#document())
      const {
        mediaType,
        password = null,
        languages,
        encoding = null,
        fileName,
        withPictures = true,
        maxPages,
      } = this.#options
      const request: Work['document.open']['request'] = {
        mediaType,
        password,
        ocrMode: sight,
        languages,
        withPictures,
        encoding,
        fileName,
        withoutPdfium,
        maxPages,
      }
      const { cpuMs, ...opened } = await lease.ask('document.open', request, this.limits)
      this.cpuMs += cpuMs
      return { lease, ...opened, since, openingMs: performance.now() - since }
    } catch (error) {
      lease.release()
      this.#countLoss(error)
      if (crashes === MAX_OPENING_RETRIES || !(error instanceof ChildLost) || error.isOverTime) throw error
      this.#withoutPdfium = true
      return this.#openIn(await this.#lease(), sight, true, crashes + 1)
    }
  }

  async #document(): Promise<Uint8Array> {
    const bytes = this.#bytes?.deref() ?? (await this.#load())
    this.#bytes = new WeakRef(bytes)
    return bytes
  }
}
