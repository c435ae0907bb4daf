/** Reads a document's pages on several threads at once. */
import { availableParallelism } from 'node:os'
import type { PageReader, PageResult } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { PageImage } from './images.ts'
import { isRoomy, isTight, type PageThread, returnThread, ThreadLost, takeThread } from './page-threads.ts'

export interface CrewOptions {
  readonly vision: Settings['visionProvider']
  readonly signal?: AbortSignal
  /** How many threads the document may have at present; default 1. */
  readonly share?: () => number
  /** Whether no other document is read in this process at present; default true. */
  readonly alone?: () => boolean
  /** Whether memory is so short that documents wait for each other; default is by what the process holds. */
  readonly tight?: () => boolean
  /** For one page, in ms, its second chance included. */
  readonly limitMs?: number
  /** For the opening of the document, in ms, its second chance included; default that for one page. */
  readonly openMs?: number
  /** The time in ms; default `performance.now()`. */
  readonly now?: () => number
}

interface Job {
  readonly page: number
  resolve(page: PageResult): void
  reject(error: unknown): void
}

// No page over 30 s, with what it takes to end a thread and to store the page; a model elsewhere has its time on top.
const LIMIT_MS = 28_000
const MODEL_MS = 45_000
// So many pages with a text layer go to a thread together: handing a page over takes a third of the time of reading it.
const LEAST_TOGETHER = 4
// Every thread has its own copy of the document, or two: of large ones there are fewer.
const COPIES_BYTES = 256 * 2 ** 20

// What a page waits for other documents in all, longer than most pages take. Those that wait for each other all go on then:
// late is better than never.
const HOLD_MS = 20_000
const HOLD_STEP_MS = 50

/**
 * Opens a document on a thread of its own, and reads its pages there and on as many more as `share` allows. A page
 * that takes too long, or that crashes its thread twice, is unread with the reason, and the others go on.
 */
export async function openOnThreads(
  bytes: Uint8Array,
  mediaType: string,
  options: CrewOptions,
): Promise<PageReader> {
  options.signal?.throwIfAborted()
  const crew = createCrew(shared(bytes), mediaType, options)
  try {
    return { pageCount: await crew.open(), read: crew.read, close: crew.close }
  } catch (error) {
    await crew.close()
    if (!(error instanceof ThreadLost)) throw error
    const page = givenUp('Opening the document', error, options.openMs ?? options.limitMs ?? LIMIT_MS)
    return { pageCount: 1, read: async () => page, close: async () => {} }
  }
}

/** Draws one page; null when there is nothing to draw, or drawing it fails. */
export async function drawOnThread(
  bytes: Uint8Array,
  mediaType: string,
  page: number,
  signal: AbortSignal,
): Promise<PageImage | null> {
  const thread = takeThread()
  const abort = (): void => void thread.end()
  signal.addEventListener('abort', abort)
  try {
    const options = { vision: 'none' } as const
    await thread.ask(
      { kind: 'open', bytes: shared(bytes), mediaType, options, hand: new SharedArrayBuffer(4) },
      LIMIT_MS,
    )
    const { image } = await thread.ask({ kind: 'draw', page }, LIMIT_MS)
    await thread.ask({ kind: 'close', wholly: true }, LIMIT_MS)
    returnThread(thread)
    return image
  } catch (error) {
    await thread.end()
    signal.throwIfAborted()
    if (error instanceof ThreadLost) return null
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function shared(bytes: Uint8Array): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(bytes.length)
  new Uint8Array(buffer).set(bytes)
  return buffer
}

function createCrew(bytes: SharedArrayBuffer, mediaType: string, options: CrewOptions) {
  const { signal, vision, share = () => 1, alone = () => true, tight = isTight } = options
  const now = options.now ?? (() => performance.now())
  const limitMs = options.limitMs ?? LIMIT_MS + (typeof vision === 'string' ? 0 : MODEL_MS)
  const openMs = options.openMs ?? limitMs
  const waiting: Job[] = []
  const free: PageThread[] = []
  const members = new Set<PageThread>()
  const joining = new Set<Promise<unknown>>()
  const hands = new Map<PageThread, Int32Array>()
  // Whether the last page that came had a text layer: then the next ones may have one, too.
  let atOnce = false
  let pumping = false
  let closed = false
  // Since when pages have been waiting for other documents; 0 when they are not. And how long the next page has waited before.
  let heldSince = 0
  let heldMs = 0
  let holding: NodeJS.Timeout | undefined

  // Only a model elsewhere is waited for. What is read here keeps a core busy, and starting an engine takes half of what
  // it takes to read a page.
  const cores = typeof vision === 'string' ? availableParallelism() : Number.POSITIVE_INFINITY
  const places = (): number =>
    !isRoomy()
      ? 1
      : Math.max(1, Math.min(share(), cores, Math.floor(COPIES_BYTES / Math.max(1, bytes.byteLength))))

  const openOn = async (thread: PageThread, careful: boolean, withinMs: number): Promise<number> => {
    const hand = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    hands.set(thread, new Int32Array(hand))
    return (
      await thread.ask({ kind: 'open', bytes, mediaType, options: { vision, careful }, hand }, withinMs)
    ).pageCount
  }

  const join = async (careful = false, withinMs = openMs): Promise<number> => {
    const thread = takeThread()
    members.add(thread)
    try {
      const pageCount = await openOn(thread, careful, withinMs)
      free.push(thread)
      return pageCount
    } catch (error) {
      await leave(thread)
      throw error
    }
  }

  const leave = async (thread: PageThread): Promise<void> => {
    members.delete(thread)
    hands.delete(thread)
    await thread.end()
  }

  const together = (): number =>
    atOnce ? Math.max(LEAST_TOGETHER, Math.ceil(waiting.length / members.size)) : 1

  /** Whether pages must wait until other documents have given memory back, or have had their time to. */
  const isHeld = (): boolean => {
    if (waiting.length === 0 || alone() || !tight()) {
      if (heldSince > 0) heldMs += now() - heldSince
      heldSince = 0
      return false
    }
    if (heldSince === 0) heldSince = now()
    return heldMs + now() - heldSince < HOLD_MS
  }

  /** The others may be waiting for us: what the document holds without need is given back first. */
  const hold = (): void => {
    for (const thread of free.splice(0)) void leave(thread)
    clearTimeout(holding)
    holding = setTimeout(pump, HOLD_STEP_MS)
  }

  const pump = (): void => {
    pumping = false
    if (closed) return
    if (isHeld()) {
      hold()
      return
    }
    while (waiting.length > 0 && free.length > 0) {
      heldMs = 0
      void work(free.pop()!, waiting.splice(0, together()))
    }
    if (waiting.length > 0 && members.size < places()) {
      const one: Promise<void> = more().finally(() => joining.delete(one))
      joining.add(one)
    }
  }

  /** One more thread, if it comes up: what keeps it from that is told by the pages that are waiting, once none is left. */
  const more = async (): Promise<void> => {
    try {
      await join()
    } catch (error) {
      if (members.size === 0) for (const job of waiting.splice(0)) job.reject(error)
    }
    pump()
  }

  const work = async (thread: PageThread, jobs: readonly Job[]): Promise<void> => {
    const end = now() + limitMs
    try {
      const { pages, heavy } = await thread.ask({ kind: 'read', pages: jobs.map((job) => job.page) }, limitMs)
      for (const [i, page] of pages.entries()) jobs[i]!.resolve(page)
      waiting.unshift(...jobs.slice(pages.length))
      atOnce = pages.at(-1)?.method === 'text_layer'
      if (heavy || members.size > places() || (!atOnce && tight())) await leave(thread)
      else free.push(thread)
    } catch (error) {
      const inHand = hands.get(thread)?.[0]
      await leave(thread)
      const culprit = jobs.find((job) => job.page === inHand) ?? jobs[0]!
      if (error instanceof ThreadLost && !closed) {
        waiting.unshift(...jobs.filter((job) => job !== culprit))
        await lost(culprit, error, end)
      } else for (const job of jobs) job.reject(error)
    }
    pump()
  }

  /**
   * A crash may be PDFium's, or what earlier pages left behind: the page gets another chance, alone and without it, in the
   * time that it has left.
   */
  const lost = async (job: Job, first: ThreadLost, end: number): Promise<void> => {
    if (first.why === 'late') return job.resolve(givenUp('Reading the page', first, limitMs))
    const thread = takeThread()
    members.add(thread)
    try {
      await openOn(thread, true, end - now())
      job.resolve((await thread.ask({ kind: 'read', pages: [job.page] }, end - now())).pages[0]!)
    } catch (error) {
      if (error instanceof ThreadLost && !closed) job.resolve(givenUp('Reading the page', error, limitMs))
      else job.reject(error)
    }
    await leave(thread)
  }

  const aborted = (): void => {
    for (const job of waiting.splice(0)) job.reject(signal!.reason)
    closed = true
    for (const thread of members) void thread.end()
  }
  signal?.addEventListener('abort', aborted, { once: true })

  return {
    open: () => {
      const end = now() + openMs
      return join().catch((error) => {
        if (error instanceof ThreadLost && error.why !== 'late') return join(true, end - now())
        throw error
      })
    },
    read: async (page: number): Promise<PageResult> => {
      signal?.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<PageResult>()
      waiting.push({ page, resolve, reject })
      // Later in this turn come the others that are asked for together.
      if (!pumping) setImmediate(pump)
      pumping = true
      return promise.catch((error) => {
        signal?.throwIfAborted()
        throw error
      })
    },
    close: async () => {
      signal?.removeEventListener('abort', aborted)
      clearTimeout(holding)
      await Promise.all(joining)
      const busy = [...members].filter((thread) => !free.includes(thread))
      closed = true
      await Promise.all(busy.map((thread) => leave(thread)))
      await Promise.all(free.splice(0).map((thread, n) => dismiss(thread, n > 0 && !isRoomy())))
    },
  }
}

/**
 * Lets a thread forget its document, and keeps it for the next one. Where memory is short only one of them keeps its
 * vision engine, which holds 200 to 300 MB; to start one takes a third of what it takes to read a page.
 */
async function dismiss(thread: PageThread, wholly: boolean): Promise<void> {
  try {
    await thread.ask({ kind: 'close', wholly }, LIMIT_MS)
    returnThread(thread)
  } catch {
    await thread.end()
  }
}

const REASONS = {
  crash: 'crashed the reader twice',
  memory: 'needs more memory than there is for one page',
} as const

function givenUp(what: string, { why }: ThreadLost, limitMs: number): PageResult {
  const reason = why === 'late' ? `took longer than ${Math.round(limitMs / 1000)} s` : REASONS[why]
  return {
    status: 'unread',
    method: 'none',
    model: null,
    detail: `${what} ${reason}`,
    text: '',
    image: null,
    givenUp: true,
  }
}
