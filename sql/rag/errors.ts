/** What is refused of retrieval: a part of the one table in `sql/errors.ts`. */
export const ragErrors = {
  'rag.missing': { status: 404, detail: 'Collection not found' },
  'rag.deleted': { status: 409, detail: 'The collection was deleted while it was indexed' },
  'rag.root_missing': { status: 503, detail: 'RAG_ROOT is no folder that the worker can read' },
  'rag.path_outside': { status: 400, detail: 'The path lies outside of RAG_ROOT' },
  'rag.path_missing': { status: 400, detail: 'The path does not exist' },
  'rag.path_kind': { status: 400, detail: 'The path is neither a folder nor a file' },
  'rag.path_denied': { status: 400, detail: 'The service may not read the path' },
  'rag.path_excluded': { status: 400, detail: 'The path is among what is never indexed' },
  'rag.exclude_invalid': { status: 400, detail: 'A pattern of exclude_patterns cannot be read' },
  'rag.too_many_files': { status: 400, detail: 'The path holds more than {most} files; exclude some' },
  'rag.too_many_chunks': {
    status: 400,
    detail: 'The collection would have more than {most} chunks; index less, or into several collections',
  },
  'rag.embedding_failed': {
    status: 502,
    detail: 'The provider of embeddings could not be reached or failed: {reason}',
    retry: 'later',
  },
  'rag.busy': { status: 503, detail: 'The collection keeps changing; try again shortly', retry: 'later' },
} as const
