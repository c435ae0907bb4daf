/** Handlers for all requests to a child. The first request of a kind loads its modules. */
import { flushCompileCache } from 'node:module'
import { serveWork } from './serve.ts'
import type { Work } from './work.ts'

type AllHandlers = {
  readonly [K in keyof Work]: (request: Work[K]['request']) => Work[K]['answer'] | Promise<Work[K]['answer']>
}

let pieces: Uint8Array[] = []

/** Returns the received file in its own memory, so that its reader may transfer it. */
function takeBytes(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

const documents = lazyModule(() => import('./documents/work.ts'))
const posts = lazyModule(() => import('./posts-work.ts'))
const chunks = lazyModule(() => import('./chunks-work.ts'))

function lazyModule<T>(load: () => Promise<T>): { get(): Promise<T>; loaded(): Promise<T> | null } {
  let loading: Promise<T> | null = null
  return {
    get: () => (loading ??= load()),
    loaded: () => loading,
  }
}

const handlers: AllHandlers = {
  bytes: (piece) => {
    pieces.push(piece)
    return null
  },
  'document.open': async (request) => (await documents.get()).open(takeBytes(), request),
  'document.read': async (pages) => (await documents.get()).read(pages),
  'document.attachment': async (piece) => (await documents.get()).attachment(piece),
  'document.draw': async (page) => (await documents.get()).draw(page),
  'posts.open': async (request) => (await posts.get()).open(Buffer.from(takeBytes().buffer), request),
  'posts.read': async (request) => (await posts.get()).read(request),
  'chunks.open': async (request) => (await chunks.get()).open(Buffer.from(takeBytes().buffer), request),
  'chunks.read': async (from) => (await chunks.get()).read(from),
  reset: async () => {
    pieces = []
    await (await documents.loaded())?.close()
    ;(await posts.loaded())?.close()
    ;(await chunks.loaded())?.close()
    // Write the compile cache now: a killed child writes none at exit.
    flushCompileCache()
    return null
  },
}

serveWork(handlers as never)
