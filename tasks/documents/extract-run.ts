import { fail } from '../../sql/errors.ts'
import {
  countPages,
  extractedPages,
  extractionSource,
  type NumberedPage,
  setAttachmentsDue,
  setPageCount,
  setPassword,
  storePages,
  storeWords,
  textBytesExcept,
} from '../../sql/pages.ts'
import { requireQuota } from '../../sql/quotas.ts'
import type { PageReader, PageResult, TaskContext } from '../context.ts'
import { refreshCollections } from '../rag/refresh-documents.ts'
import { keepAttachments } from './attachments.ts'
import type { ExtractCounts, ExtractPayload } from './extraction.ts'
import { inOrder } from './in-order.ts'
import { assertInstalled } from './languages.ts'
import { DOCUMENT_MS, DocumentBudget, unreadPage } from './limits.ts'
import { passwordOf } from './passwords.ts'

// What takes a millisecond a page is read, stored and reported together.
const FAST_PAGES = 32
// Their words take a tenth of a second.
const WORDS_PAGES = 1000

/** The work of `documents.extract`. */
export async function run(ctx: TaskContext, payload: ExtractPayload): Promise<ExtractCounts> {
  const { documentId, force, language, sealedPassword } = payload
  if (language !== undefined) assertInstalled(language)
  ctx.progress('Opening the document')
  const { pages, ownerId, isAttached, attachmentsDue } = await open(ctx, payload)
  try {
    if (pages.isLocked) await refuseWrongPassword(ctx, payload)
    await ctx.fenced(async (tx) => {
      if (await tx.maybeOne(setPageCount(documentId, pages.pageCount)))
        await requireQuota(tx, ownerId, ['pages'], ctx.settings.quotas)
      if (sealedPassword !== undefined) await tx.run(setPassword(documentId, sealedPassword))
    })
    const known = await ctx.db.any(extractedPages(documentId, ctx.job.id))
    const done = new Set(
      known.filter((page) => page.mine || (!force && page.settled)).map((page) => page.page_number),
    )
    const skipped = known.filter((page) => !page.mine && done.has(page.page_number)).length
    const left = Array.from({ length: pages.pageCount }, (_, i) => i + 1).filter((n) => !done.has(n))
    // Of what is attached to an attachment there is no end.
    const keeps = pages.attachments.length > 0 && !isAttached && (attachmentsDue || left.length > 0)
    // In the data, for the next job: by then the page is read, and this attempt may end before they are stored.
    if (keeps) await ctx.fenced((tx) => tx.run(setAttachmentsDue(documentId, true)))
    try {
      await readAll(ctx, documentId, pages, left)
    } finally {
      await storeAllWords(ctx, documentId, pages.pageCount)
      await follow(ctx, documentId, ownerId)
    }
    if (keeps) await keepAttachments(ctx, { id: documentId, ownerId }, pages)
    return { ...(await ctx.db.one(countPages(documentId, ctx.job.id))), skipped }
  } finally {
    await pages.close()
  }
}

/** Of a document that nothing was read of, its unread page says that it needs a password; what was read is kept. */
async function refuseWrongPassword(
  { db, job }: TaskContext,
  { documentId, sealedPassword }: ExtractPayload,
): Promise<void> {
  const known = await db.any(extractedPages(documentId, job.id))
  if (sealedPassword !== undefined || known.some(({ settled }) => settled))
    throw fail('document.password_wrong')
}

/**
 * Also where some of the pages were not reached: what was stored is to be found. And where nothing was left to read: whoever
 * read it may have died before this.
 */
async function storeAllWords({ db }: TaskContext, documentId: number, count: number): Promise<void> {
  for (let from = 1; from <= count; from += WORDS_PAGES)
    await db.run(storeWords(documentId, from, from + WORDS_PAGES - 1))
}

/**
 * Has the collections of documents follow, also where some of the pages were not reached. Not fenced: it does no harm to an
 * attempt that is no longer the running one, and holds no lock of the job while it waits for their mailboxes.
 */
async function follow({ db, job, settings }: TaskContext, id: number, ownerId: number | null): Promise<void> {
  const options = { ownerId, requestId: job.requestId, settings }
  await db.transaction((tx) => refreshCollections(tx, [id], options))
}

async function readAll(
  ctx: TaskContext,
  documentId: number,
  pages: PageReader,
  left: readonly number[],
): Promise<void> {
  const end = performance.now() + DOCUMENT_MS
  const { bytes } = await ctx.db.one(textBytesExcept(documentId, left))
  const budget = new DocumentBudget(ctx.settings, pages, bytes)
  const readOne = async (number: number): Promise<PageResult> => {
    if (performance.now() > end) return OUT_OF_TIME
    const { exceeded } = budget
    return exceeded === null ? budget.count(await pages.read(number)) : unreadPage(exceeded)
  }
  const read = async (number: number): Promise<NumberedPage> => ({ number, ...(await readOne(number)) })
  const store = async (rows: readonly NumberedPage[]): Promise<void> => {
    const { stored } = await ctx.db.one(storePages(documentId, ctx.job, rows))
    if (!stored) throw fail('job.superseded')
    for (const alike of runsOf(rows))
      ctx.progress(label(alike, pages.pageCount), alike.at(-1)!.number, pages.pageCount)
  }
  const inHand = (): number => (pages.isFast ? FAST_PAGES : ctx.settings.workerThreads)
  await inOrder(left, inHand, ctx.signal, read, store)
}

/** Pages that follow each other and were read in the same way. */
function runsOf(pages: readonly NumberedPage[]): NumberedPage[][] {
  const runs: NumberedPage[][] = []
  for (const page of pages) {
    const last = runs.at(-1)?.at(-1)
    if (last !== undefined && last.number === page.number - 1 && howRead(last) === howRead(page))
      runs.at(-1)!.push(page)
    else runs.push([page])
  }
  return runs
}

function label(pages: readonly NumberedPage[], count: number): string {
  const [first, last] = [pages[0]!, pages.at(-1)!]
  const which = pages.length === 1 ? `Page ${first.number}` : `Pages ${first.number} to ${last.number}`
  return `${which} of ${count}: ${howRead(first)}`
}

function howRead({ status, method, detail }: NumberedPage): string {
  if (status === 'unread') return `unread: ${detail}`
  return method === 'vision' ? 'read by vision' : 'text layer'
}

interface Opened {
  readonly pages: PageReader
  readonly ownerId: number | null
  /** Whether it came with a mail. */
  readonly isAttached: boolean
  /** Whether what came with it is still to be stored, though its page may be read. */
  readonly attachmentsDue: boolean
}

async function open(
  ctx: TaskContext,
  { documentId, language, sealedPassword }: ExtractPayload,
): Promise<Opened> {
  const source = await ctx.db.maybeOne(extractionSource(documentId))
  if (source === null) throw fail('document.missing')
  const { blob_id, byte_size, media_type } = source
  if (blob_id === null) throw fail('document.bytes_missing')
  const password = passwordOf(ctx.secretKey, documentId, sealedPassword ?? source.sealed_password)
  const load = (): Promise<Uint8Array> => ctx.blobs.readWhole(blob_id, byte_size)
  return {
    pages: await ctx.providers.openPages(load, {
      mediaType: media_type,
      password,
      languages: language,
      signal: ctx.signal,
    }),
    ownerId: source.owner_id,
    isAttached: source.attached_to_id !== null,
    attachmentsDue: source.attachments_due,
  }
}

const OUT_OF_TIME = {
  status: 'unread',
  method: 'none',
  model: null,
  detail: 'The time limit for one document was reached before this page',
  text: '',
  image: null,
} as const
