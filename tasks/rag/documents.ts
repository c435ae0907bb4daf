import { z } from 'zod'
import { readWithin } from '../../sql/db.ts'
import { searchDocuments } from '../../sql/documents/search.ts'
import {
  pageTexts,
  readSelected,
  readSelectedTagged,
  SelectedDocument,
  type Selection,
} from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { ANALYSIS, type Analyzed, MAX_PAGES_CHARACTERS } from './analyze.ts'
import { Build, type Indexed } from './build.ts'

/** Indexes the documents of a collection: what has changed since the last run, by the times of their pages. */

const DOCUMENTS_AT_ONCE = 100
// A page has at most two million characters.
const PAGES_AT_ONCE = 16
// Of a search: what it ranks is limited, too.
const MAX_FOUND = 1000

type Listed = z.output<typeof SelectedDocument>
const SelectedDocuments = z.array(SelectedDocument)
const Found = z.object({ items: z.array(z.object({ id: z.int() })) })

/** A build of a collection, ready to be swapped in, and the documents that it is to lose. */
export interface Compared {
  readonly build: Build
  readonly gone: readonly number[]
}

/** Compares a collection with its selection, and builds what is missing. @throws fail('rag.too_many_chunks'). */
export async function compareSelection(
  ctx: TaskContext,
  collection: Indexed,
  ownerId: number | null,
  selection: Selection,
): Promise<Compared> {
  ctx.progress('Looking for documents')
  const build = await Build.open(ctx, collection)
  const seen = new Set<number>()
  for await (const documents of selected(ctx, ownerId, selection)) {
    ctx.progress('Reading documents', seen.size)
    for (const document of documents) {
      ctx.signal.throwIfAborted()
      seen.add(document.id)
      await addTo(build, ctx, document)
    }
  }
  for (const id of selection.ids ?? [])
    if (!seen.has(id)) build.skip({ source: sourceOf(id), reason: 'no such document' })
  const gone = [...build.known.values()].filter(({ source }) => !build.present.has(source))
  return { build, gone: gone.map(({ id }) => id) }
}

const sourceOf = (id: number): string => `documents/${id}`

/** The documents of a selection, a batch at a time. Superseded ones only if `ids` has them, as in lists. */
async function* selected(
  { db }: TaskContext,
  ownerId: number | null,
  { tag, kind, ids, search }: Selection,
): AsyncGenerator<readonly Listed[]> {
  const listed = [ownerId, kind, tag === null ? null : [tag], null, null, ids !== null] as const
  let wanted = ids
  if (search !== null) {
    const text = await readWithin(db, searchDocuments.rank.desc, [
      ...listed,
      search,
      false,
      null,
      0,
      MAX_FOUND,
    ])
    const found = Found.parse(JSON.parse(text!)).items.map(({ id }) => id)
    wanted = ids === null ? found : found.filter((id) => ids.includes(id))
  }
  const statement = tag === null ? readSelected : readSelectedTagged
  for (let after = 0; ; ) {
    const text = await readWithin(db, statement, [...listed, wanted, after, DOCUMENTS_AT_ONCE])
    const documents = SelectedDocuments.parse(JSON.parse(text!))
    yield documents
    if (documents.length < DOCUMENTS_AT_ONCE) return
    after = documents.at(-1)!.id
  }
}

async function addTo(build: Build, ctx: TaskContext, { id, title, digest }: Listed): Promise<void> {
  const source = sourceOf(id)
  if (digest === null) return build.skip({ source, reason: 'not read yet' })
  if (build.has(source, digest)) return
  const read = await analyzed(ctx, id, title)
  if ('reason' in read) return build.skip({ source, reason: read.reason })
  await build.add({
    source,
    document: { id, title },
    sha256: Buffer.from(digest, 'hex'),
    byteSize: read.byteSize,
    format: 'document',
    analysis: ANALYSIS,
    chunks: read.chunks,
  })
}

/** The chunks of a document's pages, each of which is on one page. */
async function analyzed(
  { db, providers, signal }: TaskContext,
  id: number,
  title: string,
): Promise<(Exclude<Analyzed, { reason: string }> & { byteSize: number }) | { reason: string }> {
  const pages: string[] = []
  let characters = 0
  for (let after = 0; ; ) {
    const rows = await db.any(pageTexts(id, after, PAGES_AT_ONCE))
    for (const { page_number, text } of rows) {
      while (pages.length < page_number) pages.push('')
      pages[page_number - 1] = text.trim()
      characters += text.length
    }
    if (characters > MAX_PAGES_CHARACTERS) return { reason: `more than ${MAX_PAGES_CHARACTERS} characters` }
    if (rows.length < PAGES_AT_ONCE) break
    after = rows.at(-1)!.page_number
  }
  if (pages.every((text) => text === '')) return { reason: 'no text' }
  const bytes = Buffer.from(JSON.stringify(pages))
  // Of a name, what follows its last dot is left out.
  const fileName = `${title}.`
  const read = await providers.analyze(bytes, { format: 'pdf', fileName, arePages: true }, signal)
  return 'reason' in read ? read : { ...read, byteSize: bytes.byteLength }
}
