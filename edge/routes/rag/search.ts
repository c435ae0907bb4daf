import { route } from '../../pipeline/route.ts'
import { ask } from './question.ts'
import { SearchRequest, SearchResult } from './shapes.ts'

export const searchRoute = route({
  method: 'post',
  path: '/search',
  summary: 'Find the chunks of a collection that answer a query best',
  description: `By words (BM25 with stemming and feedback) and, where the collection has vectors, by meaning; the two lists are joined by \
reciprocal rank fusion. Of a query with a phrase between quotation marks only chunks that hold it are answered, if there are any. \
\`filter_metadata\` compares before anything is ranked: source, file_name, extension, format, chunk_index, start_line, end_line, page, \
heading. A result's \`metadata.signals\` says what has found it.`,
  body: SearchRequest,
  response: SearchResult,
  errors: ['rag.missing', 'rag.busy'],
  repeatable: 'it changes nothing',
  handle: async ({ body, edge, caller, requestId }) => {
    const question = {
      collection: body.collection_name,
      query: body.query,
      topK: body.top_k,
      filter: body.filter_metadata ?? null,
    }
    const results = await ask(edge, question, { ownerId: caller.ownerId, requestId })
    return {
      query: body.query,
      collection_name: body.collection_name,
      results: results as never,
      result_count: results.length,
    }
  },
})
