import { z } from 'zod'
import { indexFiles } from '../../../tasks/rag/index-files.ts'
import { newJob } from '../../../tasks/task.ts'
import { route } from '../../pipeline/route.ts'
import { IndexRequest, IndexResult } from './shapes.ts'

export const indexRoute = route({
  method: 'post',
  path: '/index',
  summary: 'Index the files below a path into a collection',
  description: `\`path\` is relative to \`RAG_ROOT\`, or absolute and inside it. The collection then says what is there: new and changed \
files are read, unchanged ones stay, and those that are gone leave; files that it has from elsewhere stay too. Nobody sees \
anything of a run until all of it is swapped in. Without \`extensions\`, text, Markdown, code, HTML and PDF are read. \
\`exclude_patterns\` are written as in .gitignore; whatever they say, dependencies, secrets and names that begin with a dot are \
left out. \`documents_added\` are those read in this run; what could not be read is in \`skipped\` with its reason (the first 100).`,
  auth: 'operator',
  query: z.object({ background: z.string().optional() }),
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
  ],
  sideEffect: true,
  task: ({ body }) =>
    newJob(indexFiles, {
      collection: body.collection_name,
      path: body.path,
      extensions: body.extensions,
      excludes: body.exclude_patterns,
    }),
})
