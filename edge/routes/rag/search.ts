import { route } from '../../pipeline/route.ts'
import { viewerOf } from './access.ts'
import { searchCollection } from './question.ts'
import { SearchRequest, SearchResult } from './shapes.ts'

export const searchRoute = route({
  method: 'post',
  path: '/search',
  summary: 'Search a collection',
  description: `Returns the chunks that best answer a query. Searches by words (BM25 with stemming and feedback) and, if \
the collection has vectors, by meaning; reciprocal rank fusion merges the two lists. A phrase in quotation marks limits the \
results to chunks that contain it, if there are any; only the first 8 phrases count. \`filter_metadata\` filters before \
ranking, by source, file_name, extension, format, chunk_index, start_line, end_line, page or heading, and documents also by \
document_id. The file_name of a document is its title. \`metadata.signals\` of a result names the signals that found it.`,
  body: SearchRequest,
  response: SearchResult,
  errors: ['rag.missing', 'rag.busy'],
  isRead: true,
  whyRepeatable: 'a search changes nothing',
  handle: async ({ body, edge, caller, requestId }) => {
    const question = {
      collection: body.collection_name,
      viewer: viewerOf(caller),
      query: body.query,
      topK: body.top_k,
      filter: body.filter_metadata ?? null,
    }
    const results = await searchCollection(edge, question, { ownerId: caller.ownerId, requestId })
    return {
      query: body.query,
      collection_name: body.collection_name,
      results: results as never,
      result_count: results.length,
    }
  },
})
