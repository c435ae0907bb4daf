import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from '../db.ts'
import { fail } from '../errors.ts'

/**
 * Collections for retrieval: their files or documents, and the chunks of those. Files with a null `build_id` are live.
 */

export const CollectionVersion = z.object({
  id: z.int(),
  version: z.int(),
  model: z.string().nullable(),
})
export type CollectionVersion = z.output<typeof CollectionVersion>

// State of a collection, which a search loads first.

const CollectionState = CollectionVersion.extend({
  dimensions: z.int().nullable(),
  has_neighbours: z.boolean(),
})
export type CollectionState = z.output<typeof CollectionState>

const LiveFile = CollectionState.extend({
  file: z.number().nullable(),
  chunk_count: z.number().nullable(),
  embedded: z.boolean(),
})
export type LiveFile = z.output<typeof LiveFile>

/**
 * Returns a snapshot of a collection and its files that have chunks. `embedded` is true for files with vectors to
 * search in memory. A collection without such files yields one row with a null file; a deleted collection yields no
 * row.
 */
export const listLiveFiles = (collection: number): Query<LiveFile> =>
  sql.type(LiveFile)`
    select c.id, c.version, c.embedding_model as model, c.dimensions, c.has_neighbours,
      f.id as file, f.chunk_count, v.file_id is not null as embedded from rag_collection c
    left join rag_file f on f.collection_id = c.id and f.build_id is null and f.chunk_count > 0
    left join rag_vector v on v.file_id = f.id and v.model = c.embedding_model and not c.has_neighbours
    where c.id = ${collection} and c.deleted_at is null order by f.source`

const LoadedFile = z.object({
  id: z.number(),
  source: z.string(),
  /** The document; null, like `title`, if the source is a file. */
  document_id: z.number().nullable(),
  title: z.string().nullable(),
  format: z.string(),
  terms: z.instanceof(Uint8Array),
  lengths: z.array(z.number()),
  start_lines: z.array(z.number()),
  end_lines: z.array(z.number()),
  pages: z.array(z.number().nullable()),
  headings: z.array(z.string().nullable()),
  /** The embedding model. Without vectors, `model`, `dimensions` and `floats` are null. */
  model: z.string().nullable(),
  dimensions: z.number().nullable(),
  floats: z.instanceof(Uint8Array).nullable(),
})
export type LoadedFile = z.output<typeof LoadedFile>

/**
 * Returns the search data of files, with their vectors of one model. No row for a file that is deleted or has no
 * chunks.
 */
export const loadFiles = (ids: readonly number[], model: string | null): Query<LoadedFile> =>
  sql.type(LoadedFile)`
    select f.id, f.source, f.document_id, f.title, f.format, c.*, v.model, v.dimensions, v.floats from unnest(${sql.array(ids, 'int8')}) as wanted(id)
    join rag_file f on f.id = wanted.id cross join lateral (
      select string_agg(terms, ''::bytea order by ordinal) as terms,
        array_agg(octet_length(terms) / 4 order by ordinal) as lengths,
        array_agg(start_line order by ordinal) as start_lines, array_agg(end_line order by ordinal) as end_lines,
        array_agg(page order by ordinal) as pages, array_agg(heading order by ordinal) as headings
      from rag_chunk where file_id = f.id) c
    left join rag_vector v on v.file_id = f.id and v.model = ${model}
    where f.chunk_count > 0`

// Indexing.

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
  readonly document: { readonly id: number; readonly title: string } | null
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
  readonly terms: Uint8Array
}

/** Adds files with their chunks to a build. Replaces the build's files with the same source. */
export async function addFiles(
  tx: Queries,
  collection: number,
  build: string,
  files: readonly NewFile[],
): Promise<void> {
  const sources = sql.array(
    files.map(({ source }) => source),
    'text',
  )
  await tx.run(sql.type(noRows)`
    delete from rag_file where collection_id = ${collection} and build_id = ${build}::uuid and source = any(${sources})`)
  const rows = await tx.any(sql.type(z.object({ id: z.number(), source: z.string() }))`
    insert into rag_file (collection_id, build_id, source, document_id, title, sha256, byte_size, format, analysis,
      chunk_count, term_count)
    select ${collection}, ${build}::uuid, * from ${sql.unnest(
      files.map((file) => [
        file.source,
        file.document?.id ?? null,
        file.document?.title ?? null,
        Buffer.from(file.sha256),
        file.byteSize,
        file.format,
        file.analysis,
        file.chunks.length,
        file.chunks.reduce((sum, { terms }) => sum + terms.byteLength / 4, 0),
      ]),
      ['text', 'int8', 'text', 'bytea', 'int8', 'text', 'int4', 'int4', 'int4'],
    )} as f(source, document_id, title, sha256, byte_size, format, analysis, chunk_count, term_count)
    returning id, source`)
  const ids = new Map(rows.map(({ id, source }) => [source, id]))
  const chunks = files.flatMap((file) =>
    file.chunks.map((chunk, ordinal) => toChunkRow(ids.get(file.source)!, ordinal, chunk)),
  )
  if (chunks.length > 0) await tx.run(insertChunks(chunks))
}

type ChunkRow = ReturnType<typeof toChunkRow>

function toChunkRow(file: number, ordinal: number, chunk: NewChunk) {
  return [
    file,
    ordinal,
    chunk.content,
    chunk.startOffset,
    chunk.endOffset,
    chunk.startLine,
    chunk.endLine,
    chunk.page,
    chunk.heading,
    Buffer.from(chunk.terms),
  ]
}

const insertChunks = (rows: readonly ChunkRow[]): Query<unknown> =>
  sql.type(noRows)`
    insert into rag_chunk (file_id, ordinal, content, start_offset, end_offset, start_line, end_line, page, heading,
      terms)
    select * from ${sql.unnest(rows, [
      'int8',
      'int4',
      'text',
      'int4',
      'int4',
      'int4',
      'int4',
      'int4',
      'text',
      'bytea',
    ])}`

export interface BuildSwap {
  readonly collection: number
  readonly build: string
  /** Live files to delete, because their source no longer exists. */
  readonly goneFiles: readonly number[]
  readonly request: object
  /** The embedding model; null keeps the existing vectors. */
  readonly model: string | null
}

const SwapResult = z.object({ document_count: z.number(), chunk_count: z.number() })

/** Makes the files of a build live; no row if the collection was deleted meanwhile. */
export const swapBuild = ({
  collection,
  build,
  goneFiles,
  request,
  model,
}: BuildSwap): Query<z.output<typeof SwapResult>> =>
  sql.type(SwapResult)`
    select document_count, chunk_count from rag_swap(${collection}, ${build}::uuid, ${sql.array(goneFiles, 'int8')},
      ${JSON.stringify(request)}::jsonb, ${model}::text)`

// Vectors.

const UnembeddedFile = z.object({ id: z.number(), chunk_count: z.number() })

/** Returns the files that will be live after the swap and have no vectors of the model yet. */
export const listUnembeddedFiles = (
  { collection, build, goneFiles }: Pick<BuildSwap, 'collection' | 'build' | 'goneFiles'>,
  model: string,
): Query<z.output<typeof UnembeddedFile>> =>
  sql.type(UnembeddedFile)`
    select f.id, f.chunk_count from rag_file f
    where f.collection_id = ${collection} and f.chunk_count > 0 and (f.build_id = ${build}::uuid or (f.build_id is null
        and f.id <> all(${sql.array(goneFiles, 'int8')}) and not exists (select from rag_file n
          where n.collection_id = f.collection_id and n.build_id = ${build}::uuid and n.source = f.source)))
      and not exists (select from rag_vector v where v.file_id = f.id and v.model = ${model})
    order by f.id`

const ChunkText = z.object({ file_id: z.number(), text: z.string() })

/** Returns the chunk texts of files, in order, each preceded by its heading. */
export const listChunkTexts = (files: readonly number[]): Query<z.output<typeof ChunkText>> =>
  sql.type(ChunkText)`
    select file_id, concat_ws(E'\n', heading, content) as text from rag_chunk
    where file_id = any(${sql.array(files, 'int8')}) order by file_id, ordinal`

export interface NewVectors {
  readonly file: number
  readonly dimensions: number
  readonly floats: Uint8Array
}

/** Stores vectors, except those of files that no longer exist. */
export const addVectors = (model: string, rows: readonly NewVectors[]): Query<unknown> =>
  sql.type(noRows)`
    insert into rag_vector (file_id, model, dimensions, floats)
    select n.file_id, ${model}, n.dimensions, n.floats from ${sql.unnest(
      rows.map(({ file, dimensions, floats }) => [file, dimensions, Buffer.from(floats)]),
      ['int8', 'int4', 'bytea'],
    )} as n(file_id, dimensions, floats)
    where exists (select from rag_file f where f.id = n.file_id for key share)
    on conflict (file_id, model) do update set dimensions = excluded.dimensions, floats = excluded.floats`

/**
 * Creates the table for pgvector's index if needed. `ready` is false if pgvector is missing or `dimensions` exceeds its
 * limit of 2000.
 */
export const createNeighbourTable = (dimensions: number): Query<{ ready: boolean }> =>
  sql.type(z.object({ ready: z.boolean() }))`select rag_neighbours_prepare(${dimensions}) as ready`

export interface Neighbour {
  readonly file: number
  readonly ordinal: number
  readonly vector: Float32Array
}

/** Adds vectors to the pgvector table. Call {@link addVectors} first. */
export const addNeighbours = (
  model: string,
  dimensions: number,
  rows: readonly Neighbour[],
): Query<unknown> =>
  sql.type(noRows)`
    select rag_neighbours_add(${dimensions}::int, ${model}::text, ${sql.array(
      rows.map(({ file }) => file),
      'int8',
    )}, ${sql.array(
      rows.map(({ ordinal }) => ordinal),
      'int4',
    )}, ${sql.array(
      rows.map(({ vector }) => formatVector(vector)),
      'text',
    )})`

/**
 * Copies stored bytes into a float array. A view would need an offset divisible by four, which received bytes rarely
 * have.
 */
export const floatsOf = (bytes: Uint8Array): Float32Array => new Float32Array(Uint8Array.from(bytes).buffer)

/** Converts a vector to pgvector's text format. */
export const formatVector = (vector: Float32Array): string => `[${vector.join(',')}]`

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
  sql.type(noRows)`vacuum (analyze) rag_vector`,
]
