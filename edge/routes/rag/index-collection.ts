import { indexDocuments } from '../../../tasks/rag/index-documents.task.ts'
import { indexFiles } from '../../../tasks/rag/index-files.task.ts'
import { createJob } from '../../../tasks/task.ts'
import { requireOwner } from '../../pipeline/access/auth.ts'
import { requireScope } from '../../pipeline/access/scopes.ts'
import { route } from '../../pipeline/route.ts'
import { requireOperator } from './access.ts'
import { IndexRequest, IndexResult } from './shapes.ts'

export const indexRoute = route({
  method: 'post',
  path: '/index',
  summary: 'Index files or documents into a collection',
  description: `\`path\` is relative to \`RAG_ROOT\`, or absolute and inside it. A run reads new and changed files below \
it, keeps unchanged ones and removes those that no longer exist; files from other paths stay. All changes of a run become \
visible together. Without \`extensions\`, it reads text, Markdown, code, HTML and PDF. \`exclude_patterns\` use the \
.gitignore syntax; dependencies, secrets and names that begin with a dot are always excluded. \`documents_added\` counts \
the files read in this run. \`skipped\` lists the first 100 unreadable files, with the reason.

\`metadata\` has values to add to all chunks of the run, for results and filters: texts, numbers, booleans and lists of them, \
at most 50 keys and 4096 bytes. \`file_metadata\` adds more to some files, by path relative to \`path\` or by pattern in the \
.gitignore syntax; later ones override earlier ones. A pattern must not be a number, because such keys have no order. A run \
replaces the metadata of all its files, and reads none again for that.

With \`documents\` instead of \`path\`, a run indexes pages of the caller's documents that match all given filters: \`tag\`, \
\`kind\`, \`ids\` and \`search\` (the best 1000). Superseded documents match only among \`ids\`. Only the owner and admins \
see the collection. It is updated within seconds after a document is read, changed, deleted or restored. Another request \
replaces its selection. An API key needs the scope to read documents. Only admins index files, unless the area is open or \
\`AUTH_LEVEL\` is \`basic\`.`,
  body: IndexRequest,
  response: IndexResult,
  errors: [
    'rag.path_outside',
    'rag.path_missing',
    'rag.path_kind',
    'rag.path_denied',
    'rag.path_excluded',
    'rag.exclude_invalid',
    'rag.metadata_pattern',
    'rag.metadata_too_large',
    'rag.too_many_files',
    'rag.too_many_chunks',
    'rag.deleted',
    'rag.root_missing',
    'rag.name_taken',
    'rag.embedding_failed',
    'quota.collections',
    'auth.required',
    'auth.forbidden',
  ],
  sideEffect: true,
  task: ({ body, caller, edge }) => {
    const { collection_name: collection, path, extensions, exclude_patterns: excludes, metadata } = body
    if (path !== undefined) {
      requireOperator(edge, caller)
      return createJob(indexFiles, {
        ...{ collection, path, extensions, excludes, metadata },
        file_metadata: Object.entries(body.file_metadata),
      })
    }
    requireOwner(caller)
    requireScope(caller, 'documents', 'read')
    const { tag = null, kind = null, ids = null, search = null } = body.documents!
    return createJob(indexDocuments, { collection, documents: { tag, kind, ids, search }, metadata })
  },
})
