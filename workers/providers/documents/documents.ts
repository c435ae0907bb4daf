/** Reads documents page by page in child processes, several at once. */
import { availableParallelism } from 'node:os'
import type { AttachmentInfo, OpenPages, PageReader, PageResult } from '../../../tasks/context.ts'
import type { Settings } from '../../../tasks/settings.ts'
import { tidy } from '../../children/documents/texts.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../../children/ports.ts'
import { type ReadPage, type Sight, sendBytes } from '../../children/work.ts'
import { transcribe } from '../ai/models.ts'

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
// At least this many pages with a text layer go to a child together: handing one over takes a third of its reading.
const MIN_TOGETHER = 4
// How long a document keeps a child while others wait, but at least ten times as long as it took to open it there.
const SLICE_MS = 2000
const JOIN_TIMES = 10
// How long a child waits for the next pages of its document, which are asked for when the ones before are stored.
const LINGER_MS = 250
// After a document has cost this many children, its other pages are skipped: each may have cost half a minute of CPU.
const MAX_LOST = 20
// Leaves time for the engine here, which reads the page if the model fails.
const MODEL_MS = 45_000

const ANIMATED = new Set(['image/gif', 'image/webp'])

interface Asked {
  readonly page: number
  /** A child was lost over it or another page that was read together with it: now it is read by itself. */
  readonly isSuspect?: boolean
  resolve(page: PageResult): void
  reject(error: unknown): void
}

/** A child with the document open. */
interface Member {
  readonly lease: ChildLease
  readonly pageCount: number
  readonly isLocked: boolean
  readonly attachments: readonly AttachmentInfo[]
  readonly since: number
  /** How long the opening took. */
  readonly joinMs: number
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
  isLocked = false
  attachments: readonly AttachmentInfo[] = []
  // The last page read had a text layer: then the next ones may have one, too.
  isFast = false
  readonly #children: Children
  readonly #load: () => Promise<Uint8Array>
  readonly #options: DocumentOptions
  readonly #limits: Limits
  readonly #sight: Sight
  readonly #closing = new AbortController()
  readonly #signal: AbortSignal
  readonly #waiting: Asked[] = []
  readonly #free = new Map<Member, NodeJS.Timeout>()
  // Including those that are still being leased.
  #members = 0
  #scheduled = false
  // How long its first child took to open it, and how long its children have read.
  #joinMs = 0
  #readMs = 0
  #patience: NodeJS.Timeout | undefined
  // How many children its pages have cost.
  #lost = 0
  // Whether to do without PDFium, because it may have crashed a child.
  #careful = false
  // The document, as long as its memory is not needed: several children get it shortly after each other.
  #bytes: WeakRef<Uint8Array> | null = null

  constructor(children: Children, load: () => Promise<Uint8Array>, options: DocumentOptions) {
    this.#children = children
    this.#load = load
    this.#options = options
    this.#limits = options.limits ?? LIMITS
    this.#signal = AbortSignal.any([options.signal, this.#closing.signal])
    const { vision } = options
    this.#sight = vision === 'none' ? 'none' : vision === 'tesseract' ? 'local' : 'model'
  }

  /** Null when it is open, or else its only, unread page. */
  async open(): Promise<PageResult | null> {
    try {
      const member = await this.#join(await this.#lease())
      this.pageCount = member.pageCount
      this.isLocked = member.isLocked
      this.attachments = member.attachments
      this.#members = 1
      this.#joinMs = member.joinMs
      this.#rest(member)
      return null
    } catch (error) {
      if (error instanceof ChildLost) return givenUp('Opening the document', error, this.#limits)
      throw error
    }
  }

  read(page: number): Promise<PageResult> {
    if (!(Number.isInteger(page) && page >= 1 && page <= this.pageCount))
      return Promise.reject(new RangeError(`No page ${page} of ${this.pageCount}`))
    if (this.#signal.aborted) return Promise.reject(this.#signal.reason)
    if (this.#lost >= MAX_LOST) return Promise.resolve(unread(LEFT_OUT))
    const { promise, resolve, reject } = Promise.withResolvers<PageResult>()
    this.#waiting.push({ page, resolve, reject })
    // The other pages that are requested together come later in this turn.
    if (!this.#scheduled) setImmediate(() => this.#dispatch())
    this.#scheduled = true
    return promise
  }

  async *attachment(index: number): AsyncGenerator<Uint8Array, void> {
    const member = this.#take() ?? (await this.#another())
    let isWhole = false
    try {
      for (let at = 0; !isWhole; ) {
        const piece = await member.lease.ask('document.attachment', { index, at }, this.#limits)
        isWhole = piece.length === 0
        if (!isWhole) yield piece
        at += piece.length
      }
    } finally {
      // The next attachment needs the document open, too.
      if (isWhole && !this.#isOver(member)) this.#rest(member)
      else this.#leave(member)
      this.#dispatch()
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#patience)
    for (const member of [...this.#free.keys()]) this.#leave(member)
    this.#closing.abort(new Error('The document was closed'))
    for (const asked of this.#waiting.splice(0)) asked.reject(this.#signal.reason)
  }

  #dispatch(): void {
    this.#scheduled = false
    clearTimeout(this.#patience)
    while (this.#waiting.length > 0 && this.#free.size > 0) {
      void this.#work(this.#take()!, this.#waiting.splice(0, this.#together()))
    }
    if (this.#waiting.length === 0 || this.#members >= this.#maxMembers()) return
    if (this.#members === 0 || this.#isLong) return void this.#more()
    // What is being read does not count yet: if it takes until then, its pages have taken as long as the opening, too.
    this.#patience = setTimeout(() => {
      this.#readMs = this.#joinMs
      void this.#more()
    }, this.#joinMs - this.#readMs)
  }

  /** Whether its pages have taken as long as its opening: what is read sooner needs no second child, which has to open it, too. */
  get #isLong(): boolean {
    return this.#readMs >= this.#joinMs
  }

  /** A child that is free, which is the caller's then. */
  #take(): Member | null {
    const [member, timer] = [...this.#free].at(-1) ?? []
    if (member === undefined) return null
    clearTimeout(timer)
    this.#free.delete(member)
    return member
  }

  /** A child more, for the caller. */
  async #another(): Promise<Member> {
    this.#members++
    try {
      return await this.#join(await this.#lease())
    } catch (error) {
      this.#without()
      throw error
    }
  }

  /** Each frame of an animation is drawn over all earlier ones: two children would draw them all twice. */
  #maxMembers(): number {
    return ANIMATED.has(this.#options.mediaType) ? 1 : availableParallelism()
  }

  /** How many of the waiting pages go to a child next. */
  #together(): number {
    const shares = this.#isLong ? this.#maxMembers() : this.#members
    const together = Math.max(MIN_TOGETHER, Math.ceil(this.#waiting.length / shares))
    const suspect = this.#waiting.slice(0, together).findIndex(({ isSuspect }) => isSuspect)
    if (!this.isFast || suspect === 0) return 1
    return suspect === -1 ? together : suspect
  }

  /** Adds a child: waits for the first one, takes others only if they are free. */
  async #more(): Promise<void> {
    const isFirst = this.#members++ === 0
    try {
      const lease = isFirst
        ? await this.#lease()
        : await this.#children.lease({ signal: this.#signal, ifFree: true })
      if (lease === null) return this.#without()
      this.#rest(await this.#join(lease))
      this.#dispatch()
    } catch (error) {
      this.#members--
      // Other children go on; if there are none, the waiting pages report the error.
      if (this.#members > 0) return
      for (const asked of this.#waiting.splice(0)) {
        if (error instanceof ChildLost) asked.resolve(givenUp('Opening the document', error, this.#limits))
        else asked.reject(error)
      }
    }
  }

  /** A child that was counted does not come: when the others were lost meanwhile, the pages wait for a first one. */
  #without(): void {
    if (--this.#members === 0) this.#dispatch()
  }

  #lease(): Promise<ChildLease> {
    return this.#children.lease({ signal: this.#signal })
  }

  async #whole(): Promise<Uint8Array> {
    const bytes = this.#bytes?.deref() ?? (await this.#load())
    this.#bytes = new WeakRef(bytes)
    return bytes
  }

  /** Opens the document in a child; after a crash, in another one without PDFium. */
  async #join(lease: ChildLease, sight = this.#sight): Promise<Member> {
    const since = performance.now()
    const careful = this.#careful
    try {
      await sendBytes(lease, await this.#whole())
      const { mediaType, password = null, languages, maxPages } = this.#options
      const request = { mediaType, password, sight, languages, careful, maxPages }
      const opened = await lease.ask('document.open', request, this.#limits)
      return { lease, ...opened, since, joinMs: performance.now() - since }
    } catch (error) {
      lease.release()
      if (careful || !(error instanceof ChildLost) || error.isSpent) throw error
      this.#careful = true
      return this.#join(await this.#lease(), sight)
    }
  }

  async #work(member: Member, asked: readonly Asked[]): Promise<void> {
    const since = performance.now()
    try {
      const pages = await member.lease.ask(
        'document.read',
        asked.map(({ page }) => page),
        this.#limits,
      )
      this.#readMs += performance.now() - since
      for (const [i, page] of pages.entries()) void this.#finish(page, asked[i]!)
      this.#waiting.unshift(...asked.slice(pages.length))
      this.isFast = pages.at(-1)?.method === 'text_layer'
      if (this.#isOver(member)) this.#leave(member)
      else this.#rest(member)
    } catch (error) {
      this.#leave(member)
      if (error instanceof ChildLost) {
        this.#lost++
        const [culprit] = asked
        if (asked.length > 1) this.#waiting.unshift(...asked.map((one) => ({ ...one, isSuspect: true })))
        else if (error.isSpent) culprit!.resolve(givenUp('Reading the page', error, this.#limits))
        // The crash may be due to PDFium, or to what earlier pages left behind.
        else void this.#readAlone(culprit!, true, this.#sight)
      } else for (const one of asked) one.reject(error)
    }
    this.#dispatch()
  }

  /** Whether others have waited long enough for the child. */
  #isOver({ lease, since, joinMs }: Member): boolean {
    const sliceMs = this.#options.sliceMs ?? Math.max(SLICE_MS, JOIN_TIMES * joinMs)
    return lease.isDue && !ANIMATED.has(this.#options.mediaType) && performance.now() - since > sliceMs
  }

  /** Reads a page in a child of its own, and again without PDFium if that crashes; `careful`: without it at once. */
  async #readAlone(asked: Asked, careful: boolean, sight: Sight): Promise<void> {
    this.#careful ||= careful
    try {
      const { lease } = await this.#join(await this.#lease(), sight)
      const [page] = await lease
        .ask('document.read', [asked.page], this.#limits)
        .finally(() => lease.release())
      await this.#finish(page!, asked)
    } catch (error) {
      if (!(error instanceof ChildLost)) asked.reject(error)
      else if (!careful && !error.isSpent) await this.#readAlone(asked, true, sight)
      else asked.resolve(givenUp('Reading the page', error, this.#limits))
    }
  }

  /** Completes a page: if it needs a model, that reads it; if the model fails, the engine here does. */
  async #finish({ forModel = false, ...page }: ReadPage, asked: Asked): Promise<void> {
    if (!forModel) return asked.resolve(page)
    try {
      const byModel = await this.#askModel(page)
      if (byModel !== null) return asked.resolve(byModel)
      const { image } = page
      const resolve = (read: PageResult): void => asked.resolve({ ...read, image })
      await this.#readAlone({ ...asked, resolve }, false, 'local')
    } catch (error) {
      asked.reject(error)
    }
  }

  /** Null when the model fails, or sees no words. */
  async #askModel(page: PageResult): Promise<PageResult | null> {
    const { vision } = this.#options
    if (typeof vision === 'string' || !page.image?.png) return null
    try {
      const timeoutMs = Math.min(MODEL_MS, vision.timeoutSeconds * 1000)
      const { text, model } = await transcribe(vision, page.image.png, { signal: this.#signal, timeoutMs })
      if (!/[\p{L}\p{N}]/u.test(text)) return null
      return { ...page, status: 'read', method: 'vision', model, ...tidy(text.trimEnd()) }
    } catch {
      this.#signal.throwIfAborted()
      return null
    }
  }

  #rest(member: Member): void {
    const lingerMs = Math.max(LINGER_MS, member.joinMs)
    this.#free.set(
      member,
      setTimeout(() => this.#leave(member), lingerMs),
    )
  }

  #leave(member: Member): void {
    clearTimeout(this.#free.get(member))
    this.#free.delete(member)
    this.#members--
    member.lease.release()
  }
}

const LEFT_OUT = `The page was skipped, because ${MAX_LOST} others of the document could not be read`

const givenUp = (what: string, error: ChildLost, limits: Limits): PageResult =>
  unread(`${what} ${error.reason(limits)}`)

const unread = (detail: string): PageResult => ({
  status: 'unread',
  method: 'none',
  model: null,
  detail,
  text: '',
  image: null,
  givenUp: true,
})
