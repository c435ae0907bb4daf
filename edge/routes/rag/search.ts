import { route } from '../../pipeline/route.ts'
import { viewerOf } from './access.ts'
import { ask } from './question.ts'
import { SearchRequest, SearchResult } from './shapes.ts'

export const searchRoute = route({
  method: 'post',
  path: '/search',
  summary: 'Search a collection for the chunks that best answer a query',
  description: `Searches by words (BM25 with stemming and feedback) and, if the collection has vectors, by meaning; \
reciprocal rank fusion merges the two lists. For a query with a phrase in quotation marks, only chunks that contain it \
are returned, if there are any; of more than 8 phrases the first 8 count. \`filter_metadata\` filters before ranking, by source, file_name, extension, format, \
chunk_index, start_line, end_line, page, heading, and of documents by document_id; the file_name of a document is its title. \
\`metadata.signals\` of a result says what found it.`,
  body: SearchRequest,
  response: SearchResult,
  errors: ['rag.missing', 'rag.busy'],
  isRead: true,
  repeatable: 'a search changes nothing',
  handle: async ({ body, edge, caller, requestId }) => {
    const question = {
      collection: body.collection_name,
      viewer: viewerOf(caller),
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
