import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { BuildSwap } from './collections.ts'

/** Vectors of the chunks of collections, searched in memory or with pgvector's index. */

const EmbeddedFile = z.object({
  version: z.int(),
  model: z.string().nullable(),
  dimensions: z.int().nullable(),
  file: z.number().nullable(),
})
export type EmbeddedFile = z.output<typeof EmbeddedFile>

/**
 * Returns the version of a collection and its live files with vectors of its model. A collection without such files
 * yields one row with a null file; a deleted collection yields no row.
 */
export const listEmbeddedFiles = (collection: number): Query<EmbeddedFile> =>
  sql.type(EmbeddedFile)`
    select c.version, c.embedding_model as model, c.dimensions, embedded.file_id as file from rag_collection c
    left join lateral (select v.file_id from rag_file f join rag_vector v on v.file_id = f.id and v.model = c.embedding_model
      where f.collection_id = c.id and f.build_id is null and f.chunk_count > 0) embedded on true
    where c.id = ${collection} and c.deleted_at is null`

const FileVectors = z.object({
  id: z.number(),
  model: z.string(),
  dimensions: z.number(),
  floats: z.instanceof(Uint8Array),
  /** The number of each chunk in its collection, in the order of the vectors. */
  numbers: z.array(z.number()),
})
export type FileVectors = z.output<typeof FileVectors>

/** Returns the vectors of files, of one model. No row for a file that is deleted or has no such vectors. */
export const loadVectors = (ids: readonly number[], model: string): Query<FileVectors> =>
  sql.type(FileVectors)`
    select v.file_id as id, v.model, v.dimensions, v.floats,
      array(select number from rag_chunk c where c.file_id = v.file_id order by ordinal) as numbers
    from rag_vector v where v.file_id = any(${sql.array(ids, 'int8')}) and v.model = ${model}`

/** Copies the vectors of live files to files of a build with the same source and texts. */
export const copyVectors = (
  { collection, build }: Pick<BuildSwap, 'collection' | 'build'>,
  model: string,
): Query<unknown> =>
  sql.type(noRows)`select from rag_copy_vectors(${collection}::int, ${build}::uuid, ${model}::text)`

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
