import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import {
  countPages,
  extractedPages,
  extractionSource,
  type NumberedPage,
  setPageCount,
  storePages,
} from '../../sql/pages.ts'
import type { PageReader, TaskContext } from '../context.ts'
import { defineTask } from '../task.ts'
import { inOrder } from './in-order.ts'

const Payload = z.strictObject({ documentId: z.int(), force: z.boolean() })

export const ExtractCounts = z.strictObject({
  read: z.int().min(0),
  unread: z.int().min(0),
  skipped: z.int().min(0),
})

// What the worst document may take of the clock, which its pages share with those of others. What is not read by then waits
// for another extraction.
const DOCUMENT_MS = 24 * 3600_000

/**
 * Reads a document's pages, several at once. They are stored in order and each on its own, so an attempt that is cut
 * short loses the pages in hand; the next one goes on from there.
 */
export const extract = defineTask({
  name: 'documents.extract',
  queue: 'documents',
  pool: 'children',
  actor: ({ documentId }) => `document:${documentId}`,
  whenBusy: 'join',
  // One that is forced reads what another has read, or will have: it becomes none that skips that.
  joins: ({ force }) => (force ? { force } : {}),
  // A page has ten minutes of the clock at most, and may have to wait for those of others.
  stallSeconds: 3600,
  timeoutSeconds: DOCUMENT_MS / 1000 + 3600,
  payload: Payload,
  result: ExtractCounts,
  run: async (ctx, { documentId, force }) => {
    ctx.progress('Opening the document')
    const pages = await open(ctx, documentId)
    try {
      await ctx.fenced((tx) => tx.run(setPageCount(documentId, pages.pageCount)))
      const known = await ctx.db.any(extractedPages(documentId, ctx.job.id))
      const done = new Set(
        known.filter((page) => page.mine || (!force && page.settled)).map((page) => page.page_number),
      )
      const skipped = known.filter((page) => !page.mine && done.has(page.page_number)).length
      const left = Array.from({ length: pages.pageCount }, (_, i) => i + 1).filter((n) => !done.has(n))
      await readAll(ctx, documentId, pages, left)
      return { ...(await ctx.db.one(countPages(documentId, ctx.job.id))), skipped }
    } finally {
      await pages.close()
    }
  },
})

async function readAll(
  ctx: TaskContext,
  documentId: number,
  pages: PageReader,
  left: readonly number[],
): Promise<void> {
  const end = performance.now() + DOCUMENT_MS
  const read = async (number: number): Promise<NumberedPage> => ({
    number,
    ...(performance.now() > end ? OUT_OF_TIME : await pages.read(number)),
  })
  const store = async (rows: readonly NumberedPage[]): Promise<void> => {
    const { stored } = await ctx.db.one(storePages(documentId, ctx.job, rows))
    for (const row of rows.slice(0, stored))
      ctx.progress(label(row, pages.pageCount), row.number, pages.pageCount)
    if (stored < rows.length) throw fail('job.superseded')
  }
  await inOrder(left, ctx.settings.workerThreads, ctx.signal, read, store)
}

function label(page: NumberedPage, count: number): string {
  const how =
    page.status === 'unread'
      ? `unread: ${page.detail}`
      : page.method === 'vision'
        ? 'read by vision'
        : 'text layer'
  return `Page ${page.number} of ${count}: ${how}`
}

async function open(ctx: TaskContext, documentId: number): Promise<PageReader> {
  const source = await ctx.db.maybeOne(extractionSource(documentId))
  if (source === null) throw fail('document.missing')
  const { blob_id, byte_size, media_type } = source
  if (blob_id === null) throw fail('document.bytes_missing')
  return ctx.providers.openPages(() => ctx.blobs.readWhole(blob_id, byte_size), media_type, ctx.signal)
}

const OUT_OF_TIME = {
  status: 'unread',
  method: 'none',
  model: null,
  detail: 'The time for one document was used up before this page',
  text: '',
  image: null,
} as const
