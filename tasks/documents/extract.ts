import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { Failure, fail } from '../../sql/errors.ts'
import {
  countPages,
  extractedPages,
  extractionSource,
  forgivePages,
  type NumberedPage,
  type PageRow,
  setPageCount,
  storePages,
  tryPage,
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

// A page that has cut off this many repeated attempts is left unread, and the document goes on without it.
const MOST_TRIES = 2
// A page may take half a minute, and a document may have thousands of that kind: what is not read by then waits for
// another extraction.
const DOCUMENT_MS = 3 * 3600_000

/**
 * Reads a document's pages, several at once. They are stored in order and each on its own, so an attempt that is cut
 * short loses the pages in hand; the next one goes on from there.
 */
export const extract = defineTask({
  name: 'documents.extract',
  queue: 'documents',
  pool: 'cpu',
  actor: ({ documentId }) => `document:${documentId}`,
  whenBusy: 'join',
  // A page takes seconds; a minute and a half without one is a hang.
  stallSeconds: 90,
  timeoutSeconds: DOCUMENT_MS / 1000 + 3600,
  payload: Payload,
  result: ExtractCounts,
  run: async (ctx, payload) => {
    try {
      return await extractPages(ctx, payload)
    } catch (error) {
      if (ctx.signal.aborted || isPassing(error)) await forgive(ctx, payload.documentId)
      throw error
    }
  },
})

async function extractPages(
  ctx: TaskContext,
  { documentId, force }: z.output<typeof Payload>,
): Promise<z.output<typeof ExtractCounts>> {
  ctx.progress('Opening the document')
  const pages = await openGuarded(ctx, documentId)
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
}

// Within the grace that a stopping worker gives, and longer than a restart of the database takes.
const FORGIVE_TRIES = 60
const FORGIVE_PAUSE_MS = 250

/**
 * An attempt that an outage or an orderly stop ended was not cut off by a page: its pages must not become suspects.
 * Tried through the outage; when that lasts, a page may be given up that is good.
 */
async function forgive(ctx: TaskContext, documentId: number): Promise<void> {
  if (ctx.job.attempt === 1) return
  for (let tries = 0; tries < FORGIVE_TRIES; tries++) {
    try {
      await ctx.db.run(forgivePages(documentId, ctx.job.id))
      return
    } catch (error) {
      if (!isPassing(error)) throw error
      await delay(FORGIVE_PAUSE_MS)
    }
  }
}

const isPassing = (error: unknown): boolean => error instanceof Failure && error.retryable

async function readAll(
  ctx: TaskContext,
  documentId: number,
  pages: PageReader,
  left: readonly number[],
): Promise<void> {
  const end = performance.now() + DOCUMENT_MS
  const read = async (number: number): Promise<NumberedPage> => ({
    number,
    ...(await readGuarded(ctx, documentId, number, pages, end)),
  })
  const store = async (rows: readonly NumberedPage[]): Promise<void> => {
    const { stored } = await ctx.db.one(storePages(documentId, ctx.job, rows))
    for (const row of rows.slice(0, stored))
      ctx.progress(label(row, pages.pageCount), row.number, pages.pageCount)
    if (stored < rows.length) throw fail('job.superseded')
  }
  const inHand = ctx.settings.workerThreads
  // What an earlier attempt may have had in hand when it was cut off is read one by one: so the culprit shows.
  const suspects = ctx.job.attempt === 1 ? 0 : inHand
  await inOrder(left.slice(0, suspects), 1, ctx.signal, read, store)
  await inOrder(left.slice(suspects), inHand, ctx.signal, read, store)
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

async function openGuarded(ctx: TaskContext, documentId: number): Promise<PageReader> {
  const source = await ctx.db.maybeOne(extractionSource(documentId))
  if (source === null) throw fail('document.missing')
  const { blob_id, byte_size, media_type, page_count } = source
  if (await hasCutOffAttempts(ctx, documentId, 0))
    return unreadDocument(page_count ?? 1, 'Opening the document fails again and again')
  if (blob_id === null) throw fail('document.bytes_missing')
  return ctx.providers.openPages(await ctx.blobs.readWhole(blob_id, byte_size), media_type, ctx.signal)
}

async function readGuarded(
  ctx: TaskContext,
  documentId: number,
  number: number,
  pages: PageReader,
  end: number,
): Promise<PageRow> {
  if (performance.now() > end) return unread('The time for one document was used up before this page')
  if (await hasCutOffAttempts(ctx, documentId, number))
    return { ...unread('Reading the page fails again and again'), givenUp: true }
  return pages.read(number)
}

/** Only a repeated attempt takes notes: the first has nothing to look out for. */
async function hasCutOffAttempts(ctx: TaskContext, documentId: number, page: number): Promise<boolean> {
  if (ctx.job.attempt === 1) return false
  return (await ctx.db.one(tryPage(documentId, page, ctx.job.id))).tries > MOST_TRIES
}

function unread(detail: string): PageRow {
  return { status: 'unread', method: 'none', model: null, detail, text: '', image: null }
}

function unreadDocument(pageCount: number, detail: string): PageReader {
  const page = { ...unread(detail), givenUp: true }
  return { pageCount, read: () => Promise.resolve(page), close: () => Promise.resolve() }
}
