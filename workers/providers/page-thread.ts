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
    }
  | { readonly kind: 'read' | 'draw'; readonly page: number }
  /** `wholly`: the vision engine ends, too. */
  | { readonly kind: 'close'; readonly wholly: boolean }

export type Answer =
  | { readonly kind: 'open'; readonly pageCount: number }
  /** `heavy`: the thread holds so much memory that it should be replaced. */
  | { readonly kind: 'read'; readonly page: PageResult; readonly heavy: boolean }
  | { readonly kind: 'draw'; readonly image: PageImage | null }
  | { readonly kind: 'close' }
  /** Not the document's fault. */
  | { readonly kind: 'failed'; readonly error: string }

// WebAssembly's memory never shrinks, and pdfjs keeps fonts and images of the pages it has seen.
const HEAVY_BYTES = 300 * 2 ** 20

let reader: LocalReader | null = null

parentPort?.on('message', (request: Request) => {
  answer(request).then(
    (given) => parentPort!.postMessage(given, transferable(given)),
    (error) =>
      parentPort!.postMessage({ kind: 'failed', error: String(error?.stack ?? error) } satisfies Answer),
  )
})

async function answer(request: Request): Promise<Answer> {
  switch (request.kind) {
    case 'open': {
      await reader?.close()
      reader = await openPages(new Uint8Array(request.bytes), request.mediaType, request.options)
      return { kind: 'open', pageCount: reader.pageCount }
    }
    case 'read': {
      const page = await reader!.read(request.page)
      return { kind: 'read', page, heavy: await isHeavy() }
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
  const png = given.kind === 'read' ? given.page.image?.png : given.kind === 'draw' ? given.image?.png : null
  return png ? [png.buffer as ArrayBuffer] : []
}
