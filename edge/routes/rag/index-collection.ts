import { indexDocuments } from '../../../tasks/rag/index-documents.ts'
import { indexFiles } from '../../../tasks/rag/index-files.ts'
import { newJob } from '../../../tasks/task.ts'
import { requireOwner } from '../../pipeline/auth.ts'
import { route } from '../../pipeline/route.ts'
import { requireScope } from '../../pipeline/scopes.ts'
import { requireOperator } from './access.ts'
import { IndexRequest, IndexResult } from './shapes.ts'

export const indexRoute = route({
  method: 'post',
  path: '/index',
  summary: 'Index the files below a path, or documents, into a collection',
  description: `\`path\` is relative to \`RAG_ROOT\`, or absolute and inside it. New and changed files are read, \
unchanged ones stay, and those that no longer exist are removed; files from other paths stay too. Nothing of a run is \
visible until all of it is swapped in. Without \`extensions\`, text, Markdown, code, HTML and PDF are read. \
\`exclude_patterns\` use the syntax of .gitignore; dependencies, secrets and names that begin with a dot are always \
excluded. \`documents_added\` counts the files read in this run; \`skipped\` lists those that could not be read, with \
the reason (the first 100).

With \`documents\` instead of \`path\`, the pages of the caller's documents are indexed: those with the tag, of the kind, \
among the ids and matching the search (the best 1000), as far as these are given; superseded ones only among \`ids\`. Only \
the owner and admins see the collection. It follows its documents by itself: within seconds after one is read, changed, \
deleted or restored. Another request for it replaces what it has. An API key needs the scope to read documents for it. \
Only admins index files, unless the area is open or \`AUTH_LEVEL\` is \`basic\`.`,
  body: IndexRequest,
  response: IndexResult,
  errors: [
    'rag.path_outside',
    'rag.path_missing',
    'rag.path_kind',
    'rag.path_denied',
    'rag.path_excluded',
    'rag.exclude_invalid',
    'rag.too_many_files',
    'rag.too_many_chunks',
    'rag.deleted',
    'rag.root_missing',
    'rag.name_taken',
    'quota.collections',
    'auth.required',
    'auth.forbidden',
  ],
  sideEffect: true,
  task: ({ body, caller, edge }) => {
    const { collection_name: collection, path, extensions, exclude_patterns: excludes } = body
    if (path !== undefined) {
      requireOperator(edge, caller)
      return newJob(indexFiles, { collection, path, extensions, excludes })
    }
    requireOwner(caller)
    requireScope(caller, 'documents', 'read')
    const { tag = null, kind = null, ids = null, search = null } = body.documents!
    return newJob(indexDocuments, { collection, documents: { tag, kind, ids, search } })
  },
})
