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
results to chunks that contain it, if there are any; only the first 8 phrases count. \`metadata.signals\` of a result names \
the signals that found it.

\`filter_metadata\` filters before ranking. Its keys are those of results' \`metadata\`: source, file_name, extension, format, \
chunk_index, start_line, end_line, page, heading, and those that the index request added. Chunks of documents also have \
document_id, title, kind, tags, document_date, received_at, document_source and channel, always with their current values. \
The file_name of a document is its title.

A condition is a value, or an object of operators, such as \`{"tags": {"$in": ["a", "b"]}, "year": {"$gte": 2020}}\`. Numbers \
compare as numbers, texts in the order of their code points, and values of different types never. A list matches if one of \
its elements does. \`$contains\` finds a part of a text or a member of a list. A missing key matches only \`$ne\`, \`$nin\`, \
\`$not\` and \`"$exists": false\`. At most 100 conditions, 5 levels of \`$and\`, \`$or\` and \`$not\`, 1000 values of an \`$in\`.`,
  body: SearchRequest,
  response: SearchResult,
  errors: ['rag.missing', 'rag.busy', 'quota.waiting_jobs'],
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
