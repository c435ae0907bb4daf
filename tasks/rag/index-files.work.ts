import { resolve } from 'node:path'
import { type KnownFile, type NewFile, openCollection } from '../../sql/rag/collections.ts'
import type { Metadata } from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { parseLocation } from '../documents/blobs/location.ts'
import { ANALYSIS_VERSION, type AnalysisResult, type AnalyzedPage, MAX_PAGES_CHARACTERS } from './analyze.ts'
import { Build } from './build.ts'
import { createMetadataMerger, type FileMetadata } from './file-metadata.ts'
import { extensionOf, formatOf, KNOWN_EXTENSIONS } from './formats.ts'
import type { IndexResult } from './index-result.ts'
import { omitEmpty } from './metadata.ts'
import { readFoundFile } from './read.ts'
import { type IndexTarget, resolveTarget } from './target.ts'
import { type FoundFile, listFiles, relativePathOf } from './walk.ts'

interface IndexPayload {
  readonly collection: string
  readonly path: string
  readonly extensions: readonly string[]
  readonly excludes: readonly string[]
  readonly metadata: Metadata
  readonly file_metadata: FileMetadata
}

// Maximum number of progress reports per run.
const MAX_PROGRESS_REPORTS = 1000

/** Runs `rag.index`. */
export async function run(ctx: TaskContext, payload: IndexPayload): Promise<IndexResult> {
  const startedAt = performance.now()
  ctx.reportProgress('Searching for files')
  const target = await resolveTarget(ctx.settings.rag.root, payload.path)
  const mergeMetadata = createMetadataMerger(payload.metadata, payload.file_metadata)
  const { files, skipped } = await listFiles(target, buildWalkOptions(ctx, payload))
  const name = payload.collection
  const id = await ctx.runFenced((tx) => openCollection(tx, name))
  const build = await Build.open(ctx, { id, name }, startedAt)
  build.recordSkipped(...skipped)
  const step = Math.ceil(files.length / MAX_PROGRESS_REPORTS)
  for (const [i, file] of files.entries()) {
    ctx.signal.throwIfAborted()
    if (i % step === 0) ctx.reportProgress(`Reading ${file.source}`, i, files.length)
    const metadata = mergeMetadata(relativePathOf(file.path, target))
    const prepared = await prepareFile(ctx, file, { build, metadata })
    if ('reason' in prepared) build.recordSkipped({ source: file.source, reason: prepared.reason })
    else if (prepared.file !== null) await build.add(prepared.file)
  }
  return build.finish(findRemovedFiles(target, build), requestOf(payload))
}

function buildWalkOptions({ settings, signal }: TaskContext, { extensions, excludes }: IndexPayload) {
  const store = parseLocation(settings.blobs.store)
  const ownFolders = store?.kind === 'files' ? [settings.dataDir, store.folder] : [settings.dataDir]
  return {
    extensions:
      extensions.length === 0
        ? KNOWN_EXTENSIONS
        : new Set(extensions.map((extension) => extension.replace(/^\./, '').toLowerCase())),
    excludes,
    skippedFolders: ownFolders.map((path) => resolve(path)),
    signal,
  }
}

/** The file to add, or the reason for skipping it. The file is null if its indexed version is current. */
type PreparedFile = { readonly file: NewFile | null } | { readonly reason: string }

async function prepareFile(
  ctx: TaskContext,
  found: FoundFile,
  { build, metadata }: { readonly build: Build; readonly metadata: Metadata },
): Promise<PreparedFile> {
  const { source } = found
  const fileName = source.slice(source.lastIndexOf('/') + 1)
  const format = formatOf(extensionOf(fileName))
  const read = await readFoundFile(found, format)
  if ('reason' in read) return read
  if (build.reuseSource(source, read.sha256.toString('hex'), metadata)) return { file: null }
  const { analyze } = ctx.providers
  const analyzed =
    format === 'pdf'
      ? await analyzePdf(ctx, read.bytes, fileName)
      : await analyze(read.bytes, { format, fileName }, ctx.signal)
  if ('reason' in analyzed) return analyzed
  return {
    file: {
      source,
      document: null,
      metadata,
      sha256: read.sha256,
      byteSize: read.bytes.byteLength,
      format,
      analysis: ANALYSIS_VERSION,
      chunks: analyzed.chunks,
    },
  }
}

async function analyzePdf(
  { providers, signal }: TaskContext,
  bytes: Buffer,
  fileName: string,
): Promise<AnalysisResult> {
  const reader = await providers.openPages(async () => bytes, { mediaType: 'application/pdf', signal })
  try {
    const pages: AnalyzedPage[] = []
    let [characters, reason] = [0, null as string | null]
    for (let number = 1; number <= reader.pageCount; number++) {
      const page = await reader.read(number)
      if (page.status !== 'read') reason ??= page.detail
      const text = (page.markdown ?? page.text).trim()
      pages.push({ text, isMarkdown: page.markdown != null })
      characters += text.length
      if (characters > MAX_PAGES_CHARACTERS) return { reason: `more than ${MAX_PAGES_CHARACTERS} characters` }
    }
    if (pages.every(({ text }) => text === '')) return { reason: reason ?? 'a PDF without text' }
    const file = { format: 'pdf', fileName, isPageList: true } as const
    return await providers.analyze(Buffer.from(JSON.stringify(pages)), file, signal)
  } finally {
    await reader.close()
  }
}

/** Returns the ids of live files below the target that no longer exist. Keeps files outside the target. */
function findRemovedFiles(
  { root, path, isFolder }: IndexTarget,
  { liveFiles: known, presentSources }: Build,
): number[] {
  const scope = path === root ? '' : `${path.slice(root.length).replace(/^\/+/, '')}${isFolder ? '/' : ''}`
  const isBelow = ({ source }: KnownFile): boolean => (isFolder ? source.startsWith(scope) : source === scope)
  return [...known.values()]
    .filter((file) => isBelow(file) && !presentSources.has(file.source))
    .map(({ id }) => id)
}

const requestOf = ({ path, extensions, excludes, metadata, file_metadata }: IndexPayload) => ({
  path,
  extensions,
  exclude_patterns: excludes,
  ...omitEmpty({ metadata, file_metadata }),
})
