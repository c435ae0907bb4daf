/** The inside of a thread that reads pages: one document at a time, one request after the other. */
import { getHeapStatistics } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import type { PageResult } from '../../tasks/context.ts'
import type { PageImage } from './images.ts'
import { Unreadable } from './images.ts'
import { closeVision, type LocalReader, type OpenOptions, openPages } from './pages.ts'
import { textLayerBytes } from './pdfium.ts'

/** What a thread is asked; every request has one answer, and the next one waits for it. */
export type Request =
  | {
      readonly kind: 'open'
      readonly bytes: SharedArrayBuffer
      readonly mediaType: string
      readonly options: Omit<OpenOptions, 'signal'>
      /** Where the thread writes the number of the page that it reads. */
      readonly hand: SharedArrayBuffer
    }
  /** One page is read whatever it takes; of several as many of the first as are read at once, within 20 ms or so. */
  | { readonly kind: 'read'; readonly pages: readonly number[] }
  | { readonly kind: 'draw'; readonly page: number }
  /** `wholly`: the vision engine ends, too. */
  | { readonly kind: 'close'; readonly wholly: boolean }

export type Answer =
  | { readonly kind: 'open'; readonly pageCount: number }
  /** `heavy`: the thread holds so much memory that it should be replaced. */
  | { readonly kind: 'read'; readonly pages: readonly PageResult[]; readonly heavy: boolean }
  | { readonly kind: 'draw'; readonly image: PageImage | null }
  | { readonly kind: 'close' }
  /** Not the document's fault. */
  | { readonly kind: 'failed'; readonly error: string }

// WebAssembly's memory never shrinks, and pdfjs keeps fonts and images of the pages it has seen.
const HEAVY_BYTES = 300 * 2 ** 20
// What is read is on its way after so long; and a page that takes long has nearly all of its time for itself.
const TOGETHER_MS = 20

let reader: LocalReader | null = null
let hand: Int32Array = new Int32Array(1)

parentPort?.on('message', (request: Request) => {
  answer(request).then(
    (given) => parentPort!.postMessage(given, transferable(given)),
    (error) => {
      // PDFium is in no state to go on after that, and another try may do without it.
      if (error?.name === 'RuntimeError') throw error
      parentPort!.postMessage({ kind: 'failed', error: String(error?.stack ?? error) } satisfies Answer)
    },
  )
})

async function answer(request: Request): Promise<Answer> {
  switch (request.kind) {
    case 'open': {
      await reader?.close()
      hand = new Int32Array(request.hand)
      reader = await openPages(new Uint8Array(request.bytes), request.mediaType, request.options)
      return { kind: 'open', pageCount: reader.pageCount }
    }
    case 'read': {
      const [first, ...others] = request.pages
      const pages = others.length === 0 ? [await readOne(first!)] : readTogether(request.pages)
      return { kind: 'read', pages, heavy: await isHeavy() }
    }
    case 'draw':
      return { kind: 'draw', image: await drawn(request.page) }
    case 'close':
      await reader?.close()
      reader = null
      if (request.wholly) await closeVision()
      return { kind: 'close' }
  }
}

function readOne(page: number): Promise<PageResult> {
  hand[0] = page
  return reader!.read(page)
}

function readTogether(numbers: readonly number[]): PageResult[] {
  const until = performance.now() + TOGETHER_MS
  const pages: PageResult[] = []
  for (const number of numbers) {
    hand[0] = number
    const page = reader!.readAtOnce(number)
    if (page === null) break
    pages.push(page)
    if (performance.now() > until) break
  }
  return pages
}

async function drawn(page: number): Promise<PageImage | null> {
  try {
    return await reader!.draw(page)
  } catch (error) {
    if (error instanceof Unreadable) return null
    throw error
  }
}

async function isHeavy(): Promise<boolean> {
  const { used_heap_size, external_memory } = getHeapStatistics()
  return used_heap_size + external_memory > HEAVY_BYTES || (await textLayerBytes()) > HEAVY_BYTES
}

function transferable(given: Answer): ArrayBuffer[] {
  const images =
    given.kind === 'read'
      ? given.pages.map(({ image }) => image)
      : [given.kind === 'draw' ? given.image : null]
  return images.flatMap((image) => (image?.png ? [image.png.buffer as ArrayBuffer] : []))
}
