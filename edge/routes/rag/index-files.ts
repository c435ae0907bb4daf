import { z } from 'zod'
import { indexFiles } from '../../../tasks/rag/index-files.ts'
import { newJob } from '../../../tasks/task.ts'
import { route } from '../../pipeline/route.ts'
import { IndexRequest, IndexResult } from './shapes.ts'

export const indexRoute = route({
  method: 'post',
  path: '/index',
  summary: 'Index the files below a path into a collection',
  description: `\`path\` is relative to \`RAG_ROOT\`, or absolute and inside it. New and changed files are read, \
unchanged ones stay, and those that no longer exist are removed; files from other paths stay too. Nothing of a run is \
visible until all of it is swapped in. Without \`extensions\`, text, Markdown, code, HTML and PDF are read. \
\`exclude_patterns\` use the syntax of .gitignore; dependencies, secrets and names that begin with a dot are always \
excluded. \`documents_added\` counts the files read in this run; \`skipped\` lists those that could not be read, with \
the reason (the first 100).`,
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
