import { resolve } from 'node:path'
import { fail } from '../../sql/errors.ts'
import {
  addFiles,
  dropOtherBuilds,
  type KnownFile,
  knownFiles,
  type NewFile,
  openCollection,
  swapBuild,
  VACUUMS,
} from '../../sql/rag.ts'
import type { TaskContext } from '../context.ts'
import { parseLocation } from '../documents/blobs/location.ts'
import { ANALYSIS, type Analyzed } from './analyze.ts'
import { embedBuild } from './embed-build.ts'
import { extensionOf, formatOf, KNOWN_EXTENSIONS } from './formats.ts'
import type { IndexPayload, IndexResult } from './index-files.ts'
import { type Place, placeOf } from './place.ts'
import { readFound } from './read.ts'
import { type Found, type Skipped, type Walked, walk } from './walk.ts'

/** Collections are searched in memory, where half a million chunks take about a gigabyte. */
const MOST_CHUNKS = 500_000
// How much one transaction stores: enough to make its cost small, and little enough to hold in memory.
const CHUNKS_AT_ONCE = 500
// A run over many files reports only this many steps.
const MOST_STEPS = 1000
const MOST_TOLD = 100
// About 10,000 pages of a book.
const MOST_PDF_CHARACTERS = 20_000_000

/** The work of `rag.index`. */
export async function run(ctx: TaskContext, payload: IndexPayload): Promise<IndexResult> {
  const startedAt = performance.now()
  ctx.progress('Looking for files')
  const place = await placeOf(ctx.settings.rag.root, payload.path)
  const walked = await walk(place, walkOptions(ctx, payload))
  const collection = await ctx.fenced(async (tx) => {
    const id = await openCollection(tx, payload.collection)
    await tx.run(dropOtherBuilds(id, ctx.job.id))
    return id
  })
  const known = bySource(await ctx.db.any(knownFiles(collection, null)))
  const built = await build(ctx, collection, walked, known)
  const swap = { collection, build: ctx.job.id, gone: goneFrom(place, known, built.present) }
  const model = await embedBuild(ctx, swap)
  ctx.progress('Swapping the index', walked.files.length, walked.files.length)
  ctx.signal.throwIfAborted()
  const [swapped] = await ctx.fenced((tx) =>
    tx.any(swapBuild({ ...swap, request: requestOf(payload), model })),
  )
  if (swapped === undefined) throw fail('rag.deleted')
  await giveBack(ctx, built.added + swap.gone.length)
  return {
    collection_name: payload.collection,
    documents_added: built.added,
    total_documents: swapped.document_count,
    duration_ms: Math.round(performance.now() - startedAt),
    documents_unchanged: built.unchanged,
    documents_removed: swap.gone.length,
    total_chunks: swapped.chunk_count,
    embedding_model: model,
    skipped: built.skipped.slice(0, MOST_TOLD),
    skipped_total: built.skipped.length,
  }
}

function walkOptions({ settings, signal }: TaskContext, { extensions, excludes }: IndexPayload) {
  const store = parseLocation(settings.blobs.store)
  const kept = store?.kind === 'files' ? [settings.dataDir, store.folder] : [settings.dataDir]
  return {
    extensions:
      extensions.length === 0
        ? KNOWN_EXTENSIONS
        : new Set(extensions.map((extension) => extension.replace(/^\./, '').toLowerCase())),
    excludes,
    never: kept.map((path) => resolve(path)),
    signal,
  }
}

const bySource = (files: readonly KnownFile[]): ReadonlyMap<string, KnownFile> =>
  new Map(files.map((file) => [file.source, file]))

interface Built {
  /** Sources that will be in the collection. */
  readonly present: ReadonlySet<string>
  readonly added: number
  readonly unchanged: number
  readonly skipped: readonly Skipped[]
}

/** Reads the files, and stores new and changed ones as a build of this job. */
async function build(
  ctx: TaskContext,
  collection: number,
  { files, skipped }: Walked,
  known: ReadonlyMap<string, KnownFile>,
): Promise<Built> {
  const made = bySource(await ctx.db.any(knownFiles(collection, ctx.job.id)))
  const present = new Set<string>()
  const told = [...skipped]
  let [added, unchanged, chunks, stored] = [0, 0, 0, 0]
  let waiting: NewFile[] = []
  const store = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    chunks = 0
    if (batch.length > 0) await ctx.fenced((tx) => addFiles(tx, collection, ctx.job.id, batch))
  }
  const step = Math.ceil(files.length / MOST_STEPS)
  for (const [i, file] of files.entries()) {
    ctx.signal.throwIfAborted()
    if (i % step === 0) ctx.progress(`Reading ${file.source}`, i, files.length)
    const read = await readOne(ctx, file, known, made)
    if ('reason' in read) {
      told.push({ source: file.source, reason: read.reason })
      continue
    }
    present.add(file.source)
    if (read.is === 'unchanged') unchanged++
    else added++
    if (read.is !== 'new') continue
    waiting.push(read.file)
    chunks += read.file.chunks.length
    stored += read.file.chunks.length
    if (stored > MOST_CHUNKS) throw fail('rag.too_many_chunks', { most: MOST_CHUNKS })
    if (chunks >= CHUNKS_AT_ONCE) await store()
  }
  await store()
  return { present, added, unchanged, skipped: told }
}

type ReadOne =
  | { readonly is: 'unchanged' | 'made' }
  | { readonly is: 'new'; readonly file: NewFile }
  | { readonly reason: string }

async function readOne(
  ctx: TaskContext,
  found: Found,
  known: ReadonlyMap<string, KnownFile>,
  made: ReadonlyMap<string, KnownFile>,
): Promise<ReadOne> {
  const { source } = found
  const fileName = source.slice(source.lastIndexOf('/') + 1)
  const format = formatOf(extensionOf(fileName))
  const read = await readFound(found, format)
  if ('reason' in read) return read
  const isSame = (file: KnownFile | undefined): boolean =>
    file?.sha256 === read.sha256.toString('hex') && file.analysis === ANALYSIS
  if (isSame(known.get(source))) return { is: 'unchanged' }
  if (isSame(made.get(source))) return { is: 'made' }
  const { analyze } = ctx.providers
  const analyzed =
    format === 'pdf'
      ? await analyzePdf(ctx, read.bytes, fileName)
      : await analyze(read.bytes, { format, fileName }, ctx.signal)
  if ('reason' in analyzed) return analyzed
  return {
    is: 'new',
    file: {
      source,
      sha256: read.sha256,
      byteSize: read.bytes.byteLength,
      format,
      analysis: ANALYSIS,
      chunks: analyzed.chunks,
    },
  }
}

async function analyzePdf(
  { providers, signal }: TaskContext,
  bytes: Buffer,
  fileName: string,
): Promise<Analyzed> {
  const reader = await providers.openPages(async () => bytes, { mediaType: 'application/pdf', signal })
  try {
    const pages: string[] = []
    let [characters, reason] = [0, null as string | null]
    for (let number = 1; number <= reader.pageCount; number++) {
      const page = await reader.read(number)
      if (page.status !== 'read') reason ??= page.detail
      pages.push(page.text.trim())
      characters += page.text.length
      if (characters > MOST_PDF_CHARACTERS) return { reason: `more than ${MOST_PDF_CHARACTERS} characters` }
    }
    if (pages.every((text) => text === '')) return { reason: reason ?? 'a PDF without text' }
    const file = { format: 'pdf', fileName, arePages: true } as const
    return await providers.analyze(Buffer.from(JSON.stringify(pages)), file, signal)
  } finally {
    await reader.close()
  }
}

/** Files of the collection that were below the place and are gone now; this run leaves all others alone. */
function goneFrom(
  { root, path, isFolder }: Place,
  known: ReadonlyMap<string, KnownFile>,
  present: ReadonlySet<string>,
): number[] {
  const scope = path === root ? '' : `${path.slice(root.length).replace(/^\/+/, '')}${isFolder ? '/' : ''}`
  const isBelow = (source: string): boolean => (isFolder ? source.startsWith(scope) : source === scope)
  return [...known.values()]
    .filter(({ source }) => isBelow(source) && !present.has(source))
    .map(({ id }) => id)
}

const requestOf = ({ path, extensions, excludes }: IndexPayload) => ({
  path,
  extensions,
  exclude_patterns: excludes,
})

/** Makes the space of deleted rows available for new ones. If this fails, autovacuum does it later. */
async function giveBack({ db, log }: TaskContext, changed: number): Promise<void> {
  if (changed === 0) return
  try {
    for (const vacuum of VACUUMS) await db.run(vacuum)
  } catch (error) {
    log.warn({ error: String(error) }, 'The space of an old index was not reclaimed')
  }
}
