import { z } from 'zod'
import {
  blobChunk,
  countPages,
  extractedPages,
  extractionSource,
  type PageRow,
  setPageCount,
  storePage,
  tryPage,
} from '../../sql/documents.ts'
import { fail } from '../../sql/errors.ts'
import type { PageReader, TaskContext } from '../context.ts'
import { defineTask } from '../task.ts'

const Payload = z.strictObject({ documentId: z.int(), force: z.boolean() })

export const ExtractCounts = z.strictObject({
  read: z.int().min(0),
  unread: z.int().min(0),
  skipped: z.int().min(0),
})

// A page that has cut off this many repeated attempts is left unread, and the document goes on without it.
const MOST_TRIES = 2

/**
 * Reads a document page by page. Every page commits on its own, in order, so an attempt that is cut short loses
 * the page in hand; the next one goes on from there.
 */
export const extract = defineTask({
  name: 'documents.extract',
  queue: 'documents',
  pool: 'cpu',
  actor: ({ documentId }) => `document:${documentId}`,
  whenBusy: 'join',
  // A page takes seconds; a minute and a half without one is a hang.
  stallSeconds: 90,
  payload: Payload,
  result: ExtractCounts,
  run: async (ctx, { documentId, force }) => {
    ctx.progress('Opening the document')
    const pages = await openGuarded(ctx, documentId)
    try {
      await ctx.fenced((tx) => tx.run(setPageCount(documentId, pages.pageCount)))
      const known = await ctx.db.any(extractedPages(documentId, ctx.job.id))
      const done = new Set(
        known
          .filter((page) => page.mine || (!force && page.status === 'read'))
          .map((page) => page.page_number),
      )
      const skipped = known.filter((page) => !page.mine && done.has(page.page_number)).length
      for (let number = 1; number <= pages.pageCount; number++) {
        ctx.signal.throwIfAborted()
        if (done.has(number)) continue
        const page = await readGuarded(ctx, documentId, number, pages)
        await ctx.fenced((tx) => tx.run(storePage(documentId, number, ctx.job.id, page)))
        ctx.progress(label(number, pages.pageCount, page), number, pages.pageCount)
      }
      return { ...(await ctx.db.one(countPages(documentId, ctx.job.id))), skipped }
    } finally {
      await pages.close()
    }
  },
})

function label(number: number, count: number, page: PageRow): string {
  const how =
    page.status === 'unread'
      ? `unread: ${page.detail}`
      : page.method === 'vision'
        ? 'read by vision'
        : 'text layer'
  return `Page ${number} of ${count}: ${how}`
}

async function openGuarded(ctx: TaskContext, documentId: number): Promise<PageReader> {
  const { blob_id, byte_size, media_type, page_count } = await ctx.db.one(extractionSource(documentId))
  if (await hasCutOffAttempts(ctx, documentId, 0))
    return unreadDocument(page_count ?? 1, 'Opening the document fails again and again')
  if (blob_id === null) throw fail('document.bytes_missing')
  return ctx.providers.openPages(await readBlob(ctx, blob_id, byte_size), media_type, ctx.signal)
}

async function readGuarded(
  ctx: TaskContext,
  documentId: number,
  number: number,
  pages: PageReader,
): Promise<PageRow> {
  if (await hasCutOffAttempts(ctx, documentId, number))
    return unread('Reading the page fails again and again')
  return pages.read(number)
}

/** Only a repeated attempt takes notes: the first has nothing to look out for. */
async function hasCutOffAttempts(ctx: TaskContext, documentId: number, page: number): Promise<boolean> {
  if (ctx.job.attempt === 1) return false
  return (await ctx.db.one(tryPage(documentId, page, ctx.job.id))).tries > MOST_TRIES
}

async function readBlob(ctx: TaskContext, blobId: number, byteSize: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(byteSize)
  let offset = 0
  for (let ordinal = 0; offset < byteSize; ordinal++) {
    const chunk = await ctx.db.maybeOne(blobChunk(blobId, ordinal))
    if (chunk === null || offset + chunk.bytes.length > byteSize) throw fail('document.bytes_missing')
    bytes.set(chunk.bytes, offset)
    offset += chunk.bytes.length
  }
  return bytes
}

function unread(detail: string): PageRow {
  return { status: 'unread', method: 'none', model: null, detail, text: '', image: null }
}

function unreadDocument(pageCount: number, detail: string): PageReader {
  return { pageCount, read: () => Promise.resolve(unread(detail)), close: () => Promise.resolve() }
}
