import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from '../db.ts'
import { fail } from '../errors.ts'

/**
 * Collections for retrieval: their files or documents, and the chunks of those. Files with a null `build_id` are live.
 */

const Row = z.object({ id: z.number() })

/**
 * Returns the id of the file collection with a name; creates it if needed.
 *
 * @throws fail('rag.name_taken') if a document collection has the name.
 */
export async function openCollection(tx: Queries, name: string): Promise<number> {
  const made = await tx.maybeOne(sql.type(Row)`
    insert into rag_collection (name) values (${name}) on conflict (name) where deleted_at is null do nothing returning id`)
  if (made !== null) return made.id
  const found = await tx.maybeOne(
    sql.type(
      Row,
    )`select id from rag_collection where name = ${name} and deleted_at is null and selection is null for share`,
  )
  if (found === null) throw fail('rag.name_taken')
  return found.id
}

const KnownFile = z.object({
  id: z.number(),
  source: z.string(),
  sha256: z.string(),
  analysis: z.number(),
  chunk_count: z.number(),
})
export type KnownFile = z.output<typeof KnownFile>

/** Returns the files that a build has added so far; a null build returns the live files of the collection. */
export const listKnownFiles = (collection: number, build: string | null): Query<KnownFile> =>
  sql.type(KnownFile)`
    select id, source, encode(sha256, 'hex') as sha256, analysis, chunk_count from rag_file
    where collection_id = ${collection} and ${build === null ? sql.fragment`build_id is null` : sql.fragment`build_id = ${build}::uuid`}`

/** Deletes the files of other builds of the collection, which failed or were killed. */
export const deleteOtherBuilds = (collection: number, build: string): Query<unknown> =>
  sql.type(noRows)`
    delete from rag_file where collection_id = ${collection} and build_id is not null and build_id <> ${build}::uuid`

/** Deletes the given files of a build. */
export const deleteBuildFiles = (build: string, files: readonly number[]): Query<unknown> =>
  sql.type(noRows)`
    delete from rag_file where id = any(${sql.array(files, 'int8')}) and build_id = ${build}::uuid`

export interface NewFile {
  readonly source: string
  /** The document, if the source is one; null for a file. */
  readonly document: number | null
  /** The metadata that the request adds. */
  readonly metadata: object
  readonly sha256: Uint8Array
  readonly byteSize: number
  readonly format: string
  readonly analysis: number
  readonly chunks: readonly NewChunk[]
}

export interface NewChunk {
  readonly content: string
  readonly startOffset: number
  readonly endOffset: number
  readonly startLine: number
  readonly endLine: number
  readonly page: number | null
  readonly heading: string | null
  /** Text that is searched with the content, such as the name of the file. */
  readonly context: string
}

const FreeNumbers = z.object({ first: z.number(), last: z.number().nullable() })

/** Yields the numbers, in ascending order, that no chunk of a collection had when this was called. */
export async function openFreeNumbers(db: Queries, collection: number): Promise<Iterator<number, never>> {
  const ranges = await db.any(sql.type(FreeNumbers)`
    select number + 1 as first, next - 1 as last
    from (select number, lead(number) over (order by number) as next from (
      select -1 as number union all select number from rag_chunk where collection_id = ${collection}) used) following
    where next is null or next > number + 1 order by number`)
  return (function* () {
    // The last range has no end.
    for (const { first, last } of ranges)
      for (let number = first; last === null || number <= last; number++) yield number
    throw new Error('The numbers of chunks are exhausted')
  })()
}

const AddedFile = z.object({ id: z.number(), source: z.string(), dictionary: z.string() })

// Analyzing this many chunks takes about half a second. Files may have more.
const CHUNKS_PER_INSERT = 1000
// Characters of a file that tell its language.
const SAMPLE_CHARACTERS = 2000

/**
 * Adds files with their chunks to a build. Replaces the build's files with the same source. Each chunk gets the next of
 * `numbers`.
 */
export async function addFiles(
  tx: Queries,
  collection: number,
  build: string,
  files: readonly NewFile[],
  numbers: Iterator<number, never>,
): Promise<void> {
  const sources = sql.array(
    files.map(({ source }) => source),
    'text',
  )
  await tx.run(sql.type(noRows)`
    delete from rag_file where collection_id = ${collection} and build_id = ${build}::uuid and source = any(${sources})`)
  const rows = await tx.any(sql.type(AddedFile)`
    insert into rag_file (collection_id, build_id, source, document_id, metadata, sha256, byte_size, format, analysis,
      chunk_count, dictionary)
    select ${collection}, ${build}::uuid, source, document_id, metadata, sha256, byte_size, format, analysis, chunk_count,
      rag_dictionary(sample) from ${sql.unnest(
        files.map((file) => [
          file.source,
          file.document,
          JSON.stringify(file.metadata),
          Buffer.from(file.sha256),
          file.byteSize,
          file.format,
          file.analysis,
          file.chunks.length,
          sampleOf(file),
        ]),
        ['text', 'int8', 'jsonb', 'bytea', 'int8', 'text', 'int4', 'int4', 'text'],
      )} as f(source, document_id, metadata, sha256, byte_size, format, analysis, chunk_count, sample)
    returning id, source, dictionary`)
  const added = new Map(rows.map((row) => [row.source, row]))
  const chunks = files.flatMap((file) =>
    file.chunks.map((chunk, ordinal) =>
      toChunkRow(added.get(file.source)!, ordinal, numbers.next().value, chunk),
    ),
  )
  for (let from = 0; from < chunks.length; from += CHUNKS_PER_INSERT)
    await tx.run(insertChunks(collection, chunks.slice(from, from + CHUNKS_PER_INSERT)))
}

function sampleOf({ chunks }: NewFile): string {
  let sample = ''
  for (const { content } of chunks) {
    if (sample.length >= SAMPLE_CHARACTERS) break
    sample += `${content}\n`
  }
  return sample.slice(0, SAMPLE_CHARACTERS).toWellFormed()
}

type ChunkRow = ReturnType<typeof toChunkRow>

function toChunkRow(
  { id, dictionary }: z.output<typeof AddedFile>,
  ordinal: number,
  number: number,
  chunk: NewChunk,
) {
  const { content, startOffset, endOffset, startLine, endLine, page, heading, context } = chunk
  const position = [startOffset, endOffset, startLine, endLine, page]
  return [id, ordinal, number, content, ...position, heading, context, dictionary]
}

const CHUNK_TYPES = [
  'int8',
  'int4',
  'int4',
  'text',
  'int4',
  'int4',
  'int4',
  'int4',
  'int4',
  'text',
  'text',
  'text',
]

const insertChunks = (collection: number, rows: readonly ChunkRow[]): Query<unknown> =>
  sql.type(noRows)`
    insert into rag_chunk (file_id, ordinal, collection_id, number, content, start_offset, end_offset, start_line,
      end_line, page, heading, terms, common_terms)
    select c.file_id, c.ordinal, ${collection}, c.number, c.content, c.start_offset, c.end_offset, c.start_line,
      c.end_line, c.page, c.heading, t.terms, t.common_terms
    from (
      -- Looks each dictionary up once, not for each of its words.
      select *, dictionary_name::regdictionary as dictionary from ${sql.unnest(rows, CHUNK_TYPES)} as given(file_id, ordinal,
        number, content, start_offset, end_offset, start_line, end_line, page, heading, context, dictionary_name) offset 0) c
    -- Cells of tables in Markdown have these line ends.
    cross join lateral rag_terms(replace(concat_ws(E'\n', c.context, c.heading, c.content), '<br>', ' '), c.dictionary) t`

export interface BuildSwap {
  readonly collection: number
  readonly build: string
  /** Live files to delete, because their source no longer exists. */
  readonly goneFiles: readonly number[]
  readonly request: object
  /** The new metadata of live files that the swap keeps: their ids, by the metadata as JSON. */
  readonly metadata?: ReadonlyMap<string, readonly number[]>
  /** The embedding model; null keeps the existing vectors. */
  readonly model: string | null
}

const SwapResult = z.object({ document_count: z.number(), chunk_count: z.number() })

const ChangedFile = z.object({ file_id: z.number(), is_added: z.boolean(), chunk_count: z.number() })

// Merging the postings of this many chunks takes a second or two.
const CHUNKS_PER_MERGE = 8192

/**
 * Makes the files of a build live. Merges the postings in batches, because one statement for all of them would exceed its
 * time limit in the largest collections. Returns null if the collection was deleted meanwhile.
 */
export async function swapBuild(
  tx: Queries,
  { collection, build, goneFiles, request, metadata = new Map(), model }: BuildSwap,
): Promise<z.output<typeof SwapResult> | null> {
  const change = sql.fragment`${collection}, ${build}::uuid, ${sql.array(goneFiles, 'int8')}`
  const files = await tx.any(sql.type(ChangedFile)`
    select file_id, is_added, chunk_count from rag_changed_files(${change}) where chunk_count > 0 order by file_id`)
  for (const batch of groupByChunks(files, CHUNKS_PER_MERGE)) {
    const { added = [], removed = [] } = Object.groupBy(batch, ({ is_added }) =>
      is_added ? 'added' : 'removed',
    )
    const [addedIds, removedIds] = [added, removed].map((group) => group.map(({ file_id }) => file_id))
    await tx.run(sql.type(noRows)`
      select from rag_merge_postings(${collection}, ${sql.array(addedIds!, 'int8')}, ${sql.array(removedIds!, 'int8')})`)
  }
  await tx.run(setMetadata(collection, metadata))
  return tx.maybeOne(sql.type(SwapResult)`
    select document_count, chunk_count from rag_swap(${change}, ${JSON.stringify(request)}::jsonb, ${model}::text)`)
}

/** Changes the metadata of live files where they differ. */
const setMetadata = (collection: number, files: NonNullable<BuildSwap['metadata']>): Query<unknown> =>
  sql.type(noRows)`
    update rag_file f set metadata = changed.metadata
    from (select g.metadata, unnest(g.files) as id
      from jsonb_to_recordset(${buildMetadataJson(files)}::jsonb) as g(metadata jsonb, files bigint[])) changed
    where f.id = changed.id and f.collection_id = ${collection} and f.metadata <> changed.metadata`

const buildMetadataJson = (files: NonNullable<BuildSwap['metadata']>): string =>
  `[${[...files].map(([metadata, ids]) => `{"metadata":${metadata},"files":${JSON.stringify(ids)}}`).join()}]`

/** Groups files so that each group has about `max` chunks. */
function groupByChunks<T extends { readonly chunk_count: number }>(files: readonly T[], max: number): T[][] {
  const groups: T[][] = []
  let chunks = max
  for (const file of files) {
    if (chunks >= max) {
      groups.push([])
      chunks = 0
    }
    groups.at(-1)!.push(file)
    chunks += file.chunk_count
  }
  return groups
}

// Deleting.

/** Marks a collection as deleted, which hides it; no row if it is already deleted. */
export const markCollectionDeleted = (id: number): Query<{ id: number }> =>
  sql.type(
    Row,
  )`update rag_collection set deleted_at = now() where id = ${id} and deleted_at is null returning id`

/** Returns the deleted collections whose rows still exist. */
export const listDeletedCollections = (): Query<{ id: number }> =>
  sql.type(Row)`select id from rag_collection where deleted_at is not null order by id`

/** Deletes a batch of files that belong to builds whose jobs have ended; returns their number. */
export const deleteDeadBuilds = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with gone as (delete from rag_file where id in (
      select f.id from rag_file f where f.build_id is not null and not exists (
        select from job j where j.id = f.build_id and j.finished_at is null)
      limit ${batch}) returning id)
    select count(*)::int as count from gone`

/** Deletes collections without files that are marked as deleted, or whose first run did not finish within a day. */
export const deleteEmptyCollections = (): Query<unknown> =>
  sql.type(noRows)`
    delete from rag_collection c
    where (c.deleted_at is not null or (c.version = 0 and c.created_at < now() - interval '1 day'))
      and not exists (select from rag_file f where f.collection_id = c.id)`

/** Statements that reclaim the space of deleted rows. They cannot run in a transaction. */
export const VACUUM_STATEMENTS: readonly Query<unknown>[] = [
  sql.type(noRows)`vacuum (analyze) rag_file`,
  sql.type(noRows)`vacuum (analyze) rag_chunk`,
  sql.type(noRows)`vacuum (analyze) rag_posting`,
  sql.type(noRows)`vacuum (analyze) rag_vector`,
]
