/** Errors of retrieval: part of the table in `errors.ts`. */
export const ragErrors = {
  'rag.missing': { detail: 'Collection not found' },
  'rag.name_taken': { detail: 'Another collection has this name' },
  'rag.deleted': { detail: 'The collection was deleted while it was being indexed' },
  'rag.root_missing': { detail: 'RAG_ROOT is not a folder the worker can read' },
  'rag.path_outside': { detail: 'The path is outside RAG_ROOT' },
  'rag.path_missing': { detail: 'The path does not exist' },
  'rag.path_kind': { detail: 'The path is neither a folder nor a file' },
  'rag.path_denied': { detail: 'The service has no permission to read the path' },
  'rag.path_excluded': { detail: 'The path is always excluded from indexing' },
  'rag.exclude_invalid': { detail: 'A pattern in exclude_patterns is invalid' },
  'rag.metadata_pattern': { detail: 'A pattern in file_metadata is invalid' },
  'rag.metadata_too_large': { detail: 'The metadata of {file} would exceed {max} bytes' },
  'rag.too_many_files': { detail: 'The path contains more than {max} files; exclude some' },
  'rag.too_many_chunks': {
    detail: 'The collection would exceed {max} chunks; index fewer files or use several collections',
  },
  'rag.embedding_failed': {
    detail: 'The embeddings provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'rag.busy': { detail: 'The collection keeps changing; try again shortly', retry: 'later' },
} as const
