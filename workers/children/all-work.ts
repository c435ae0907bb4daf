/** Handlers for all requests to a child. The first request of a kind loads its modules. */
import { flushCompileCache } from 'node:module'
import { createLazy } from '../../tasks/platform/lazy.ts'
import { serveWork } from './serve.ts'
import type { Work } from './work.ts'

type AllHandlers = {
  readonly [K in keyof Work]: (request: Work[K]['request']) => Work[K]['answer'] | Promise<Work[K]['answer']>
}

let pieces: Uint8Array[] = []

/** Returns the received file in a buffer of its own, so that the reader may transfer the buffer. */
function takeBytes(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

const documentModule = createLazyModule(() => import('./documents/work.ts'))
const postModule = createLazyModule(() => import('./posts-work.ts'))
const audioModule = createLazyModule(() => import('./audio/work.ts'))
const chunkModule = createLazyModule(() => import('./chunks-work.ts'))

function createLazyModule<T>(load: () => Promise<T>): { get(): Promise<T>; loaded(): T | null } {
  let loaded: T | null = null
  return {
    get: createLazy(async () => {
      loaded = await load()
      return loaded
    }),
    loaded: () => loaded,
  }
}

const handlers: AllHandlers = {
  bytes: (piece) => {
    pieces.push(piece)
    return null
  },
  'document.open': async (request) => (await documentModule.get()).open(takeBytes(), request),
  'document.read': async (pages) => (await documentModule.get()).read(pages),
  'document.attachment': async (piece) => (await documentModule.get()).copyAttachmentPiece(piece),
  'document.draw': async (page) => (await documentModule.get()).draw(page),
  'document.words': async (page) => (await documentModule.get()).words(page),
  'posts.open': async (request) => (await postModule.get()).open(Buffer.from(takeBytes().buffer), request),
  'posts.read': async (request) => (await postModule.get()).read(request),
  'chunks.open': async (request) => (await chunkModule.get()).open(Buffer.from(takeBytes().buffer), request),
  'chunks.read': async (from) => (await chunkModule.get()).read(from),
  'audio.cut': async (request) => (await audioModule.get()).cut(takeBytes(), request),
  'audio.read': async (at) => (await audioModule.get()).read(at),
  reset: async () => {
    pieces = []
    await documentModule.loaded()?.close()
    postModule.loaded()?.close()
    audioModule.loaded()?.close()
    chunkModule.loaded()?.close()
    // Write the compile cache now: a killed child writes none at exit.
    flushCompileCache()
    return null
  },
}

serveWork(handlers as never)
