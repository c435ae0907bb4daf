import { setTimeout as delay } from 'node:timers/promises'
import { findBlobLocation } from '../../sql/documents/blobs.ts'
import { setMediaType } from '../../sql/documents/documents.ts'
import {
  countPages,
  countTextBytesExcept,
  type ExtractionSource,
  findExtractionSource,
  listExtractedPages,
  type NumberedPage,
  setAttachmentsDue,
  setEncoding,
  setPageCount,
  setPassword,
  storePages,
  storeWords,
} from '../../sql/documents/pages.ts'
import { fail } from '../../sql/errors.ts'
import { requireQuota } from '../../sql/quotas/quotas.ts'
import type { PageReader, PageResult, TaskContext } from '../context.ts'
import { refreshCollections } from '../rag/refresh-documents.task.ts'
import { storeAttachments } from './attachments.ts'
import { type ExtractCounts, type ExtractPayload, sealPassword, unsealPassword } from './extraction.ts'
import { assertLanguagesInstalled } from './languages.ts'
import { createUnreadPage, DOCUMENT_TIMEOUT_MS, DocumentBudget } from './limits.ts'
import { chooseMediaType, HEAD_BYTES, sniffMediaType } from './media.ts'

// A page with a text layer takes about a millisecond, so many such pages are read, stored and reported together.
const MAX_FAST_PAGES_IN_FLIGHT = 32
// Storing the words of this many pages takes a few hundredths of a second, or seconds if they are long.
const PAGES_PER_WORD_BATCH = 200

/** Runs `documents.extract`. */
export async function run(ctx: TaskContext, payload: ExtractPayload): Promise<ExtractCounts> {
  const { documentId, language, sealedPassword } = payload
  if (language !== undefined) assertLanguagesInstalled(language)
  ctx.reportProgress('Opening the document')
  const opened = await openDocument(ctx, payload)
  const { pages, password, ownerId, isNested, attachmentsDue, isReread, givenEncoding } = opened
  try {
    if (pages.isLocked) await rejectWrongPassword(ctx, payload)
    await ctx.runFenced(async (tx) => {
      if (await tx.maybeOne(setPageCount(documentId, pages.pageCount)))
        await requireQuota(tx, ownerId, ['pages'], ctx.settings.quotas)
      // Sealed again, because the payload may be older than the current key.
      if (sealedPassword !== undefined && password !== null)
        await tx.run(setPassword(documentId, sealPassword(ctx.keys, documentId, password)))
      if (pages.encoding !== null) await tx.run(setEncoding(documentId, pages.encoding, givenEncoding))
    })
    const known = await ctx.db.any(listExtractedPages(documentId, ctx.job.id))
    const done = new Set(
      known.filter((page) => page.mine || (!isReread && page.settled)).map((page) => page.page_number),
    )
    const skipped = known.filter((page) => !page.mine && done.has(page.page_number)).length
    const remaining = Array.from({ length: pages.pageCount }, (_, i) => i + 1).filter((n) => !done.has(n))
    // Store the attachments of an attachment, such as a PDF in a mail, but none below: they may nest without limit.
    const hasAttachmentsToStore =
      pages.attachments.length > 0 && !isNested && (attachmentsDue || remaining.length > 0)
    // The flag makes a later job store the attachments if this attempt ends before it stores them.
    if (hasAttachmentsToStore) await ctx.runFenced((tx) => tx.run(setAttachmentsDue(documentId, true)))
    try {
      await readPages(ctx, documentId, pages, remaining)
    } finally {
      await storeAllWords(ctx, documentId, pages.pageCount)
      await updateCollections(ctx, documentId, ownerId)
    }
    if (hasAttachmentsToStore) await storeAttachments(ctx, { id: documentId, ownerId }, pages)
    return { ...(await ctx.db.one(countPages(documentId, ctx.job.id))), skipped }
  } finally {
    await pages.close()
  }
}

/**
 * Fails if the given password is wrong, or if the stored password no longer opens a document that was read before. The
 * document keeps its pages. A document that was never read instead gets an unread page that says it needs a password.
 *
 * @throws fail('document.password_wrong')
 */
async function rejectWrongPassword(
  { db, job }: TaskContext,
  { documentId, sealedPassword }: ExtractPayload,
): Promise<void> {
  const known = await db.any(listExtractedPages(documentId, job.id))
  if (sealedPassword !== undefined || known.some(({ settled }) => settled))
    throw fail('document.password_wrong')
}

/**
 * Stores the search words of all pages. Call it even after a failure, so that searches find the stored pages. Call it
 * even if no page was left to read, because an earlier attempt may have died before this step.
 */
async function storeAllWords({ db }: TaskContext, documentId: number, count: number): Promise<void> {
  for (let from = 1; from <= count; from += PAGES_PER_WORD_BATCH)
    await db.run(storeWords(documentId, from, from + PAGES_PER_WORD_BATCH - 1))
}

/**
 * Refreshes the collections that contain the document. Not fenced: a superseded attempt does no harm here, and a fence
 * would hold the job's lock while it waits for the mailboxes.
 */
async function updateCollections(
  { db, job, settings }: TaskContext,
  id: number,
  ownerId: number | null,
): Promise<void> {
  const options = { ownerId, requestId: job.requestId, settings }
  await db.transaction((tx) => refreshCollections(tx, [id], options))
}

async function readPages(
  ctx: TaskContext,
  documentId: number,
  pages: PageReader,
  remaining: readonly number[],
): Promise<void> {
  const deadline = performance.now() + DOCUMENT_TIMEOUT_MS
  const { bytes } = await ctx.db.one(countTextBytesExcept(documentId, remaining))
  const budget = new DocumentBudget(ctx.settings, pages, bytes)
  const readOne = async (number: number): Promise<PageResult> => {
    if (performance.now() > deadline) return TIMED_OUT_PAGE
    const { exceededReason } = budget
    return exceededReason === null
      ? budget.countPage(await pages.read(number))
      : createUnreadPage(exceededReason)
  }
  const read = async (number: number): Promise<NumberedPage> => {
    const page = await readOne(number)
    if (page.loss !== undefined)
      ctx.log.warn({ documentId, page: number, ...page.loss }, 'A page lost nearly all of its text')
    return { number, ...page }
  }
  const store = async (rows: readonly NumberedPage[]): Promise<void> => {
    const { stored } = await ctx.db.one(storePages(documentId, ctx.job, rows))
    if (!stored) throw fail('job.superseded')
    for (const run of groupRuns(rows))
      ctx.reportProgress(formatProgressLabel(run, pages.pageCount), run.at(-1)!.number, pages.pageCount)
  }
  const maxInFlight = (): number => (pages.isFast ? MAX_FAST_PAGES_IN_FLIGHT : ctx.settings.workerThreads)
  await readInOrder(remaining, maxInFlight, ctx.signal, read, store)
}

/** Groups consecutive pages that were read in the same way, for progress reports. */
function groupRuns(pages: readonly NumberedPage[]): NumberedPage[][] {
  const runs: NumberedPage[][] = []
  for (const page of pages) {
    const last = runs.at(-1)?.at(-1)
    if (
      last !== undefined &&
      last.number === page.number - 1 &&
      describeReading(last) === describeReading(page)
    )
      runs.at(-1)!.push(page)
    else runs.push([page])
  }
  return runs
}

function formatProgressLabel(pages: readonly NumberedPage[], count: number): string {
  const [first, last] = [pages[0]!, pages.at(-1)!]
  const range = pages.length === 1 ? `Page ${first.number}` : `Pages ${first.number} to ${last.number}`
  return `${range} of ${count}: ${describeReading(first)}`
}

function describeReading({ status, method, detail }: NumberedPage): string {
  if (status === 'unread') return `unread: ${detail}`
  return method === 'vision' ? 'read by vision' : 'text layer'
}

interface OpenedDocument {
  readonly pages: PageReader
  /** Null if none is known. */
  readonly password: string | null
  readonly ownerId: number | null
  /** True for an attachment of an attachment. */
  readonly isNested: boolean
  /** True if pages that were read before must be read again. */
  readonly isReread: boolean
  /** The encoding that the owner named, now or before; null if none. */
  readonly givenEncoding: string | null
  /** True if the document's attachments are not stored yet, even if its page has been read. */
  readonly attachmentsDue: boolean
}

async function openDocument(
  ctx: TaskContext,
  { documentId, force, language, encoding, sealedPassword }: ExtractPayload,
): Promise<OpenedDocument> {
  const source = await ctx.db.maybeOne(findExtractionSource(documentId))
  if (source === null) throw fail('document.missing')
  const { blob_id, byte_size } = source
  if (blob_id === null) throw fail('document.bytes_missing')
  const password = unsealPassword(ctx.keys, documentId, sealedPassword ?? source.sealed_password)
  if (sealedPassword !== undefined && password === null)
    throw new Error('The password was sealed under an unknown SECRET_KEY')
  const load = (): Promise<Uint8Array> => ctx.blobs.readWhole(blob_id, byte_size)
  const givenEncoding = encoding ?? source.given_encoding
  return {
    pages: await ctx.providers.openPages(load, {
      mediaType: force ? await sniffAgain(ctx, documentId, blob_id, source) : source.media_type,
      password,
      encoding: givenEncoding,
      fileName: source.title,
      languages: language,
      signal: ctx.signal,
    }),
    password,
    ownerId: source.owner_id,
    isNested: source.is_nested,
    isReread: force || (encoding !== undefined && encoding !== source.encoding),
    givenEncoding,
    attachmentsDue: source.attachments_due,
  }
}

/** Detects the type of a document again, by its title. Returns the type to read it as, and stores a better one. */
async function sniffAgain(
  ctx: TaskContext,
  documentId: number,
  blobId: number,
  { media_type: known, title, byte_size }: ExtractionSource,
): Promise<string> {
  const at = await ctx.db.maybeOne(findBlobLocation(blobId))
  if (at === null) throw fail('document.bytes_missing')
  const pieces: Uint8Array[] = []
  for await (const piece of ctx.blobs.read(at, 0, Math.min(byte_size, HEAD_BYTES)))
    pieces.push(Buffer.from(piece))
  const sniffed = await sniffMediaType(Buffer.concat(pieces), { fileName: title, mediaType: known })
  const better = chooseMediaType(known, sniffed)
  if (better !== known) await ctx.runFenced((tx) => tx.run(setMediaType(documentId, better)))
  return better
}

const TIMED_OUT_PAGE = {
  status: 'unread',
  method: 'none',
  model: null,
  detail: 'The document reached its time limit before this page was read',
  text: '',
  image: null,
} as const

// Storing several pages takes hardly longer than storing one, so a short wait for more is worthwhile.
const GATHER_DELAY_MS = 10

/**
 * Reads pages concurrently and stores them in order, while it reads the next ones. At most `maxInFlight()` pages are
 * being read and as many are being stored, which bounds the loss in a crash. Stores pages together if they are ready at
 * the same time. If a page fails, stores all pages before it, then throws the error.
 */
async function readInOrder<T>(
  pages: readonly number[],
  maxInFlight: () => number,
  signal: AbortSignal,
  read: (page: number) => Promise<T>,
  store: (ready: readonly T[]) => Promise<void>,
): Promise<void> {
  const inFlight: PendingPage<T>[] = []
  let storing: Promise<void> = Promise.resolve()
  try {
    for (let next = 0; next < pages.length || inFlight.length > 0; ) {
      signal.throwIfAborted()
      while (inFlight.length < maxInFlight() && next < pages.length)
        inFlight.push(trackPage(read(pages[next++]!)))
      await inFlight[0]!.promise
      await Promise.race([Promise.allSettled(inFlight.map(({ promise }) => promise)), delay(GATHER_DELAY_MS)])
      await storing
      const unfinished = inFlight.findIndex(({ value }) => value === undefined)
      const ready = inFlight.splice(0, unfinished === -1 ? inFlight.length : unfinished)
      storing = store(ready.map(({ value }) => value!))
      storing.catch(() => {}) // The next `await storing` throws the error.
    }
  } finally {
    await storing
  }
}

interface PendingPage<T> {
  readonly promise: Promise<T>
  value: T | undefined
}

function trackPage<T>(promise: Promise<T>): PendingPage<T> {
  const page: PendingPage<T> = { promise, value: undefined }
  promise.then(
    (value) => {
      page.value = value
    },
    () => {}, // `readInOrder` throws the error when this page is next to be stored.
  )
  return page
}
