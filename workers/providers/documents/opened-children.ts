/** The child processes that have one document open. */
import { availableParallelism } from 'node:os'
import type { AttachmentInfo, OpenPages } from '../../../tasks/context.ts'
import type { Settings } from '../../../tasks/settings.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../../children/ports.ts'
import { type ReadPage, type Sight, sendBytes } from '../../children/work.ts'

export interface DocumentOptions extends OpenPages {
  readonly vision: Settings['visionProvider']
  readonly maxPages: number
  /** For opening the document, and for one page. */
  readonly limits?: Limits
  /** How long, in ms, it keeps its children while others wait: opening it anew costs as much as a page or two. */
  readonly sliceMs?: number
}

// A dense page takes ten seconds of CPU time, the worst of ordinary ones twenty.
export const LIMITS: Limits = { cpuMs: 28_000 }
// How long a document keeps a child while others wait, but at least ten times as long as it took to open it there.
const SLICE_MS = 2000
const OPENING_TIMES = 10
// How long a child waits for the next pages of its document, which are asked for when the ones before are stored.
const IDLE_MS = 250

const ANIMATED = new Set(['image/gif', 'image/webp'])

/** A child with the document open. */
export interface OpenedChild {
  readonly lease: ChildLease
  readonly pageCount: number
  readonly unpackedBytes: number
  readonly isLocked: boolean
  readonly attachments: readonly AttachmentInfo[]
  /** By `performance.now()`, from when it had the document. */
  readonly since: number
  /** How long the opening took. */
  readonly openingMs: number
}

/**
 * The children that have a document open, each for its pages alone: leased when more of them are of use, kept while its
 * next pages may come, released when nothing comes or others wait.
 */
export class OpenedChildren {
  /** Those that are still being leased count, too. */
  size = 0
  /** PDFium is done without once it may have crashed a child. */
  withoutPdfium = false
  /** CPU time that the document has taken in all its children, in ms. */
  cpuMs = 0
  readonly limits: Limits
  readonly #children: Children
  readonly #load: () => Promise<Uint8Array>
  readonly #options: DocumentOptions
  readonly #sight: Sight
  readonly #signal: AbortSignal
  readonly #idle = new Map<OpenedChild, NodeJS.Timeout>()
  // The document, as long as its memory is not needed: several children get it shortly after each other.
  #bytes: WeakRef<Uint8Array> | null = null

  /** @param signal aborts what is being opened and read. */
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
    this.limits = options.limits ?? LIMITS
    const { vision } = options
    this.#sight = vision === 'none' ? 'none' : vision === 'tesseract' ? 'local' : 'model'
  }

  /** Each frame of an animation is drawn over all earlier ones: two children would draw them all twice. */
  get maxSize(): number {
    return this.#isAnimated ? 1 : availableParallelism()
  }

  get hasIdle(): boolean {
    return this.#idle.size > 0
  }

  /** A child that was kept, the caller's from then on; null when there is none. */
  takeIdle(): OpenedChild | null {
    const [child, timer] = [...this.#idle].at(-1) ?? []
    if (child === undefined) return null
    clearTimeout(timer)
    this.#idle.delete(child)
    return child
  }

  /** One more, the caller's; null when `ifFree` and no child is free at once. @throws as `openAlone`. */
  async add(): Promise<OpenedChild>
  async add(options: { readonly ifFree: boolean }): Promise<OpenedChild | null>
  async add({ ifFree } = { ifFree: false }): Promise<OpenedChild | null> {
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
   * One that does not count, for the caller to release by its lease.
   * @throws ChildLost when the document can't be opened.
   */
  async openAlone(sight = this.#sight): Promise<OpenedChild> {
    return this.#openIn(await this.#lease(), sight)
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

  /** A child that has used up its CPU time reports nothing. */
  #countLoss(error: unknown): void {
    if (error instanceof ChildLost && error.why === 'cpu') this.cpuMs += this.limits.cpuMs
  }

  /** Keeps a child for the next pages, which may come within a moment. */
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
    return ANIMATED.has(this.#options.mediaType)
  }

  #isDue({ lease, since, openingMs }: OpenedChild): boolean {
    const sliceMs = this.#options.sliceMs ?? Math.max(SLICE_MS, OPENING_TIMES * openingMs)
    return lease.isDue && !this.#isAnimated && performance.now() - since > sliceMs
  }

  #lease(): Promise<ChildLease> {
    return this.#children.lease({ signal: this.#signal })
  }

  /** Opens the document in a child; after a crash, in another one without PDFium. */
  async #openIn(lease: ChildLease, sight: Sight): Promise<OpenedChild> {
    const since = performance.now()
    const { withoutPdfium } = this
    try {
      await sendBytes(lease, await this.#document())
      const { mediaType, password = null, languages, maxPages } = this.#options
      const request = { mediaType, password, sight, languages, withoutPdfium, maxPages }
      const { cpuMs, ...opened } = await lease.ask('document.open', request, this.limits)
      this.cpuMs += cpuMs
      return { lease, ...opened, since, openingMs: performance.now() - since }
    } catch (error) {
      lease.release()
      this.#countLoss(error)
      if (withoutPdfium || !(error instanceof ChildLost) || error.isSpent) throw error
      this.withoutPdfium = true
      return this.#openIn(await this.#lease(), sight)
    }
  }

  async #document(): Promise<Uint8Array> {
    const bytes = this.#bytes?.deref() ?? (await this.#load())
    this.#bytes = new WeakRef(bytes)
    return bytes
  }
}
