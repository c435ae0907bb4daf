/** Reads documents page by page in child processes, several at once. */
import { availableParallelism } from 'node:os'
import type { PageReader, PageResult } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/settings.ts'
import { tidy } from '../children/documents/texts.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../children/ports.ts'
import { type ReadPage, type Sight, sendBytes, type Work } from '../children/work.ts'
import { transcribe } from './models.ts'

export interface DocumentOptions {
  readonly vision: Settings['visionProvider']
  readonly maxPages: number
  readonly signal: AbortSignal
  /** For the opening of the document, and for one page. */
  readonly limits?: Limits
  /** For so long, in ms, it keeps its children although others wait: opening it anew costs a page or two. */
  readonly sliceMs?: number
}

// A dense page takes ten seconds of CPU time, the worst of ordinary ones twenty.
const LIMITS: Limits = { cpuMs: 28_000 }
// So many pages with a text layer go to a child together: handing a page over takes a third of the time of reading it.
const LEAST_TOGETHER = 4
const SLICE_MS = 2000
// For so long a child waits for the next pages of its document, which come when those before are stored.
const LINGER_MS = 250
// With what the engine here takes afterwards, if it must.
const MODEL_MS = 45_000

interface Asked {
  readonly page: number
  resolve(page: PageResult): void
  reject(error: unknown): void
}

/** A child with the document open. */
interface Member {
  readonly lease: ChildLease
  readonly since: number
}

/**
 * Opens a document. A page that takes too long, or that crashes its child twice, is unread with the reason, and the others go
 * on; so is a document that cannot be opened.
 */
export async function openDocument(
  children: Children,
  load: () => Promise<Uint8Array>,
  mediaType: string,
  options: DocumentOptions,
): Promise<PageReader> {
  const reader = new DocumentReader(children, load, mediaType, options)
  const unread = await reader.open()
  if (unread === null) return reader
  return { pageCount: 1, read: async () => unread, close: async () => {} }
}

/** Draws one page; null when there is nothing to draw, or drawing it fails. */
export async function drawPage(
  children: Children,
  bytes: Uint8Array,
  mediaType: string,
  page: number,
  { maxPages, signal, limits = LIMITS }: Omit<DocumentOptions, 'vision'>,
): Promise<Work['document.draw']['answer']> {
  const lease = await children.lease({ urgent: true, signal })
  try {
    await sendBytes(lease, bytes)
    await lease.ask('document.open', { mediaType, sight: 'none', careful: false, maxPages }, limits)
    return await lease.ask('document.draw', page, limits)
  } catch (error) {
    if (error instanceof ChildLost) return null
    throw error
  } finally {
    lease.release()
  }
}

class DocumentReader implements PageReader {
  pageCount = 0
  readonly #children: Children
  readonly #load: () => Promise<Uint8Array>
  readonly #mediaType: string
  readonly #options: DocumentOptions
  readonly #limits: Limits
  readonly #sight: Sight
  readonly #waiting: Asked[] = []
  readonly #free = new Map<Member, NodeJS.Timeout>()
  readonly #busy = new Set<Member>()
  // With those that are being taken.
  #members = 0
  #scheduled = false
  #closed = false
  // Whether the last page that came had a text layer: then the next ones may have one, too.
  #atOnce = false

  constructor(
    children: Children,
    load: () => Promise<Uint8Array>,
    mediaType: string,
    options: DocumentOptions,
  ) {
    this.#children = children
    this.#load = load
    this.#mediaType = mediaType
    this.#options = options
    this.#limits = options.limits ?? LIMITS
    const { vision } = options
    this.#sight = vision === 'none' ? 'none' : vision === 'tesseract' ? 'local' : 'model'
  }

  /** Null when it is open, else its only page. */
  async open(): Promise<PageResult | null> {
    for (const careful of [false, true]) {
      try {
        this.#members = 1
        const { member, pageCount } = await this.#join(careful)
        this.pageCount = pageCount
        this.#rest(member)
        return null
      } catch (error) {
        this.#members = 0
        if (!(error instanceof ChildLost)) throw error
        if (careful || isSpent(error)) return givenUp('Opening the document', error, this.#limits)
      }
    }
    return null
  }

  read(page: number): Promise<PageResult> {
    if (!(Number.isInteger(page) && page >= 1 && page <= this.pageCount))
      return Promise.reject(new RangeError(`No page ${page} of ${this.pageCount}`))
    const { promise, resolve, reject } = Promise.withResolvers<PageResult>()
    this.#waiting.push({ page, resolve, reject })
    // Later in this turn come the others that are asked for together.
    if (!this.#scheduled) setImmediate(() => this.#dispatch())
    this.#scheduled = true
    return promise
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const asked of this.#waiting.splice(0)) asked.reject(new Error('The document was closed'))
    for (const member of [...this.#free.keys()]) this.#leave(member)
    for (const { lease } of this.#busy) lease.kill()
  }

  #dispatch(): void {
    this.#scheduled = false
    while (this.#waiting.length > 0 && this.#free.size > 0) {
      const [member, timer] = [...this.#free].at(-1)!
      clearTimeout(timer)
      this.#free.delete(member)
      void this.#work(member, this.#waiting.splice(0, this.#together()))
    }
    if (this.#waiting.length > 0 && this.#members < availableParallelism()) void this.#more()
  }

  #together(): number {
    return this.#atOnce ? Math.max(LEAST_TOGETHER, Math.ceil(this.#waiting.length / this.#members)) : 1
  }

  /** One more child; what keeps it from coming is told by the pages that are waiting, once there is no other. */
  async #more(): Promise<void> {
    this.#members++
    try {
      const { member } = await this.#join(false)
      if (this.#closed) return this.#leave(member)
      this.#rest(member)
      this.#dispatch()
    } catch (error) {
      this.#members--
      if (this.#members === 0) for (const asked of this.#waiting.splice(0)) asked.reject(error)
    }
  }

  async #join(careful: boolean, sight = this.#sight): Promise<{ member: Member; pageCount: number }> {
    const { signal, maxPages } = this.#options
    const lease = await this.#children.lease({ signal })
    try {
      await sendBytes(lease, await this.#load())
      const request = { mediaType: this.#mediaType, sight, careful, maxPages }
      const { pageCount } = await lease.ask('document.open', request, this.#limits)
      return { member: { lease, since: performance.now() }, pageCount }
    } catch (error) {
      lease.release()
      throw error
    }
  }

  async #work(member: Member, asked: readonly Asked[]): Promise<void> {
    this.#busy.add(member)
    try {
      const pages = await member.lease.ask(
        'document.read',
        asked.map(({ page }) => page),
        this.#limits,
      )
      for (const [i, page] of pages.entries()) void this.#finish(page, asked[i]!)
      this.#waiting.unshift(...asked.slice(pages.length))
      this.#atOnce = pages.at(-1)?.method === 'text_layer'
      const isOver =
        member.lease.isDue && performance.now() - member.since > (this.#options.sliceMs ?? SLICE_MS)
      if (this.#closed || isOver) this.#leave(member)
      else this.#rest(member)
    } catch (error) {
      this.#leave(member)
      if (error instanceof ChildLost && !this.#closed) {
        const culprit = asked.find(({ page }) => page === error.at) ?? asked[0]!
        this.#waiting.unshift(...asked.filter((one) => one !== culprit))
        void this.#readAgain(culprit, error)
      } else for (const one of asked) one.reject(error)
    }
    this.#dispatch()
  }

  /** A crash may be PDFium's, or what earlier pages left behind: the page gets another chance, alone and without it. */
  async #readAgain(asked: Asked, first: ChildLost): Promise<void> {
    if (isSpent(first)) return asked.resolve(givenUp('Reading the page', first, this.#limits))
    await this.#readAlone(asked, true, this.#sight)
  }

  async #readAlone(asked: Asked, careful: boolean, sight: Sight): Promise<void> {
    try {
      const { member } = await this.#join(careful, sight)
      const [page] = await member.lease
        .ask('document.read', [asked.page], this.#limits)
        .finally(() => member.lease.release())
      await this.#finish(page!, asked)
    } catch (error) {
      if (error instanceof ChildLost) asked.resolve(givenUp('Reading the page', error, this.#limits))
      else asked.reject(error)
    }
  }

  /** A page whose words a model has to tell is still to be read; where the model fails, the engine here does it. */
  async #finish({ forModel = false, ...page }: ReadPage, asked: Asked): Promise<void> {
    if (!forModel) return asked.resolve(page)
    const byModel = await this.#askModel(page).catch((error) => {
      asked.reject(error)
    })
    if (byModel === undefined) return
    if (byModel !== null) return asked.resolve(byModel)
    const { image } = page
    await this.#readAlone({ ...asked, resolve: (read) => asked.resolve({ ...read, image }) }, false, 'local')
  }

  /** Null when the model fails, or sees no words. */
  async #askModel(page: PageResult): Promise<PageResult | null> {
    const { vision, signal } = this.#options
    if (typeof vision === 'string' || !page.image?.png) return null
    try {
      const timeoutMs = Math.min(MODEL_MS, vision.timeoutSeconds * 1000)
      const { text, model } = await transcribe(vision, page.image.png, { signal, timeoutMs })
      if (!/[\p{L}\p{N}]/u.test(text)) return null
      return { ...page, status: 'read', method: 'vision', model, ...tidy(text.trimEnd()) }
    } catch {
      signal.throwIfAborted()
      return null
    }
  }

  #rest(member: Member): void {
    this.#busy.delete(member)
    this.#free.set(
      member,
      setTimeout(() => this.#leave(member), LINGER_MS),
    )
  }

  #leave(member: Member): void {
    clearTimeout(this.#free.get(member))
    this.#free.delete(member)
    this.#busy.delete(member)
    this.#members--
    member.lease.release()
  }
}

/** A page that has used its time up would do so again. */
const isSpent = ({ why }: ChildLost): boolean => why === 'cpu' || why === 'time'

function givenUp(what: string, { why }: ChildLost, { cpuMs }: Limits): PageResult {
  const seconds = Math.round(cpuMs / 1000)
  const reasons = {
    cpu: `takes more than ${seconds} s of computing`,
    time: 'takes too long',
    crash: 'crashed the reader twice',
    memory: 'needs more memory than there is for one page',
  } as const
  return {
    status: 'unread',
    method: 'none',
    model: null,
    detail: `${what} ${reasons[why]}`,
    text: '',
    image: null,
    givenUp: true,
  }
}
