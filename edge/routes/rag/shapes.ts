import { z } from 'zod'
import { IndexResult as Indexed } from '../../../tasks/rag/index-result.ts'
import { NextField } from '../../pipeline/request/lists.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'
import { AddedFileMetadata, AddedMetadata, MetadataFilter, rejectDocumentKeys } from './metadata.ts'

/** Name of a collection in one line without slashes, because it is part of paths. */
export const CollectionName = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}\p{Cs}/\\]+$/u, 'must be one line without slashes')
  .refine((name) => name !== '.' && name !== '..', 'must not be . or ..')

export const CollectionParams = z.object({ name: CollectionName })

const Documents = z
  .strictObject({
    tag: z.string().min(1).max(64).optional(),
    kind: z.string().min(1).max(32).optional(),
    ids: z.array(z.int().min(1)).min(1).max(1000).optional(),
    search: z.string().min(1).max(500).regex(/\S/, 'must not be blank').optional(),
  })
  .meta({ id: 'RagDocuments', description: 'Documents of the caller that match all given filters' })

export const IndexRequest = z
  .strictObject({
    path: z.string().min(1).max(4096).optional(),
    documents: Documents.optional(),
    collection_name: CollectionName,
    extensions: z
      .array(z.string().regex(/^\.?[A-Za-z0-9_+-]{1,20}$/, 'must be an extension such as md or .md'))
      .max(100)
      .default([]),
    exclude_patterns: z.array(z.string().min(1).max(500)).max(200).default([]),
    metadata: AddedMetadata.default({}),
    file_metadata: AddedFileMetadata.default({}),
  })
  .refine(({ path, documents }) => (path === undefined) !== (documents === undefined), {
    error: 'either path or documents is required, not both',
    path: ['path'],
  })
  .refine(
    ({ documents, extensions, exclude_patterns, file_metadata }) =>
      documents === undefined ||
      extensions.length + exclude_patterns.length + Object.keys(file_metadata).length === 0,
    { error: 'extensions, exclude_patterns and file_metadata require path', path: ['documents'] },
  )
  .superRefine(({ documents, metadata }, context) => {
    if (documents !== undefined) rejectDocumentKeys(metadata, context)
  })
  .meta({
    id: 'RagIndexRequest',
    examples: [
      { path: 'docs', collection_name: 'handbook', extensions: ['md'], exclude_patterns: ['drafts/'] },
      { documents: { tag: 'lease' }, collection_name: 'leases' },
    ],
  })

export const IndexResult = Indexed.meta({ id: 'RagIndexResult' })

export const SearchRequest = z
  .strictObject({
    query: z.string().min(1).max(4000).regex(/\S/, 'must not be blank'),
    collection_name: CollectionName,
    top_k: z.int().min(1).max(50).default(5),
    filter_metadata: MetadataFilter.nullish(),
  })
  .meta({ id: 'RagSearchRequest' })

export const SearchResult = z
  .strictObject({
    query: z.string(),
    collection_name: z.string(),
    results: z.array(
      z.strictObject({
        content: z.string(),
        metadata: z.looseObject({ source: z.string(), file_name: z.string() }),
        score: z.number().min(0).max(1),
        rank: z.int().min(1),
      }),
    ),
    result_count: z.int().min(0),
  })
  .meta({ id: 'RagSearchResult' })

export const Collection = z
  .strictObject({
    name: z.string(),
    document_count: z.int(),
    chunk_count: z.int(),
    metadata: z.record(z.string(), z.unknown()),
    embedding_model: z.string().nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'RagCollection' })

export const Files = z
  .strictObject({
    collection_name: z.string(),
    files: z.array(z.strictObject({ source: z.string(), chunks: z.int() })),
    ...NextField,
    total_files: z.int(),
    total_chunks: z.int(),
  })
  .meta({ id: 'RagFiles' })

export const DeletionResult = z
  .strictObject({ deleted: z.literal(true), collection_name: z.string() })
  .meta({ id: 'RagDeleted' })

export const Health = z
  .strictObject({
    service: z.literal('rag'),
    status: z.enum(['healthy', 'degraded', 'unhealthy']),
    embeddings: z.enum(['local', 'openai', 'lexical']),
    active_embeddings: z.enum(['local', 'openai', 'lexical']),
    model: z.string().nullable(),
    pgvector: z.boolean(),
    collections: z.int(),
    documents: z.int(),
    chunks: z.int(),
    configuration_valid: z.boolean(),
    validation_errors: z.array(z.string()),
  })
  .meta({ id: 'RagHealth' })
