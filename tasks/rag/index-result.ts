import { z } from 'zod'

/** The result of an indexing run over files or documents. */
export const IndexResult = z.strictObject({
  collection_name: z.string(),
  documents_added: z.int().min(0),
  total_documents: z.int().min(0),
  duration_ms: z.number().min(0),
  documents_unchanged: z.int().min(0),
  documents_removed: z.int().min(0),
  total_chunks: z.int().min(0),
  /** Embedding model; null if this run had none. */
  embedding_model: z.string().nullable(),
  skipped: z.array(z.strictObject({ source: z.string(), reason: z.string() })),
  skipped_total: z.int().min(0),
})
export type IndexResult = z.output<typeof IndexResult>
