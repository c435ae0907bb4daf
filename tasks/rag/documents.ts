import { z } from 'zod'
import { readWithin } from '../../sql/db.ts'
import { searchDocuments } from '../../sql/documents/search.ts'
import {
  listPageTexts,
  type Metadata,
  readSelectedDocuments,
  readSelectedTaggedDocuments,
  SelectedDocument,
  type Selection,
} from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { ANALYSIS_VERSION, type AnalysisResult, type AnalyzedPage, MAX_PAGES_CHARACTERS } from './analyze.ts'
import { Build, type IndexedCollection } from './build.ts'

/** Indexes the documents of a collection. Skips documents whose title and pages have not changed since the last run. */

const DOCUMENTS_PER_READ = 100
// A page has at most two million characters.
const PAGES_PER_READ = 16
// Maximum number of documents in the result of a selection's search; the search itself also ranks a limited number.
const MAX_SEARCH_RESULTS = 1000

type ListedDocument = z.output<typeof SelectedDocument>
const SelectedDocuments = z.array(SelectedDocument)
const SearchResult = z.object({ items: z.array(z.object({ id: z.int() })) })

/** A build that is ready to swap in, and the ids of the live files that the swap removes. */
export interface PreparedBuild {
  readonly build: Build
  readonly gone: readonly number[]
}

/** Compares a collection with its selection and builds the missing documents. @throws fail('rag.too_many_chunks'). */
export async function prepareBuild(
  ctx: TaskContext,
  collection: IndexedCollection,
  ownerId: number | null,
  { selection, metadata }: { readonly selection: Selection; readonly metadata: Metadata },
): Promise<PreparedBuild> {
  ctx.reportProgress('Searching for documents')
  const build = await Build.open(ctx, collection)
  const seen = new Set<number>()
  for await (const documents of listSelected(ctx, ownerId, selection)) {
    ctx.reportProgress('Reading documents', seen.size)
    for (const document of documents) {
      ctx.signal.throwIfAborted()
      seen.add(document.id)
      await addDocument(build, ctx, document, metadata)
    }
  }
  for (const id of selection.ids ?? [])
    if (!seen.has(id)) build.recordSkipped({ source: sourceOf(id), reason: 'no such document' })
  const gone = [...build.liveFiles.values()].filter(({ source }) => !build.presentSources.has(source))
  return { build, gone: gone.map(({ id }) => id) }
}

const sourceOf = (id: number): string => `documents/${id}`

/** Yields the documents of a selection in batches. Like lists, includes superseded ones only if `ids` names them. */
async function* listSelected(
  { db }: TaskContext,
  ownerId: number | null,
  { tag, kind, ids, search }: Selection,
): AsyncGenerator<readonly ListedDocument[]> {
  const listed = [ownerId, kind, tag === null ? null : [tag], null, null, ids !== null] as const
  let selectedIds = ids
  if (search !== null) {
    const text = await readWithin(db, searchDocuments.rank.desc, [
      ...listed,
      search,
      false,
      null,
      0,
      MAX_SEARCH_RESULTS,
    ])
    const found = SearchResult.parse(JSON.parse(text!)).items.map(({ id }) => id)
    selectedIds = ids === null ? found : found.filter((id) => ids.includes(id))
  }
  const statement = tag === null ? readSelectedDocuments : readSelectedTaggedDocuments
  for (let after = 0; ; ) {
    const text = await readWithin(db, statement, [...listed, selectedIds, after, DOCUMENTS_PER_READ])
    const documents = SelectedDocuments.parse(JSON.parse(text!))
    yield documents
    if (documents.length < DOCUMENTS_PER_READ) return
    after = documents.at(-1)!.id
  }
}

async function addDocument(
  build: Build,
  ctx: TaskContext,
  { id, title, digest }: ListedDocument,
  metadata: Metadata,
): Promise<void> {
  const source = sourceOf(id)
  if (digest === null) return build.recordSkipped({ source, reason: 'not read yet' })
  if (build.reuseSource(source, digest, metadata)) return
  const read = await analyzeDocument(ctx, id, title)
  if ('reason' in read) return build.recordSkipped({ source, reason: read.reason })
  await build.add({
    source,
    document: id,
    metadata,
    sha256: Buffer.from(digest, 'hex'),
    byteSize: read.byteSize,
    format: 'document',
    analysis: ANALYSIS_VERSION,
    chunks: read.chunks,
  })
}

/** Cuts a document into chunks, at the headings, lists and tables of its Markdown; no chunk spans two pages. */
async function analyzeDocument(
  { db, providers, signal }: TaskContext,
  id: number,
  title: string,
): Promise<(Exclude<AnalysisResult, { reason: string }> & { byteSize: number }) | { reason: string }> {
  const pages: AnalyzedPage[] = []
  let characters = 0
  for (let after = 0; ; ) {
    const rows = await db.any(listPageTexts(id, after, PAGES_PER_READ))
    for (const { page_number, text, is_markdown: isMarkdown } of rows) {
      while (pages.length < page_number) pages.push({ text: '', isMarkdown: false })
      pages[page_number - 1] = { text: text.trim(), isMarkdown }
      characters += text.length
    }
    if (characters > MAX_PAGES_CHARACTERS) return { reason: `more than ${MAX_PAGES_CHARACTERS} characters` }
    if (rows.length < PAGES_PER_READ) break
    after = rows.at(-1)!.page_number
  }
  if (pages.every(({ text }) => text === '')) return { reason: 'no text' }
  const bytes = Buffer.from(JSON.stringify(pages))
  // The analysis strips a file extension. The added dot prevents it from stripping the end of the title.
  const fileName = `${title}.`
  const read = await providers.analyze(bytes, { format: 'pdf', fileName, isPageList: true }, signal)
  return 'reason' in read ? read : { ...read, byteSize: bytes.byteLength }
}
