import { readRagCounts } from '../../../sql/rag/reads.ts'
import type { Edge } from '../../pipeline/context.ts'
import { route } from '../../pipeline/route.ts'
import { getModelProblem } from './model-state.ts'
import type { JobOrigin } from './question.ts'
import { Health } from './shapes.ts'

interface Counts {
  readonly collections: number
  readonly documents: number
  readonly chunks: number
  readonly pgvector: boolean
}

export const healthRoute = route({
  method: 'get',
  path: '/health',
  summary: 'Get the health and configuration of retrieval',
  description: `\`active_embeddings\` names the embeddings that searches use now. If the configured model is unavailable, \
it is \`lexical\` (words only), the status is \`degraded\`, and \`validation_errors\` has the reason. The response has the \
last known state of the model, without delay. If it is older than 10 s, a check starts in the background.`,
  response: Health,
  reads: 'statistics',
  mayLag: true,
  handle: async ({ edge, caller, requestId, reader }) => {
    const { embeddings, model } = edge.settings.rag
    const counts = JSON.parse((await reader.text(readRagCounts, []))!) as Counts
    const problem = findEmbeddingsProblem(edge, { ownerId: caller.ownerId, requestId })
    return {
      service: 'rag' as const,
      status: problem === null ? ('healthy' as const) : ('degraded' as const),
      embeddings,
      active_embeddings: problem === null ? embeddings : ('lexical' as const),
      model,
      ...counts,
      configuration_valid: problem === null,
      validation_errors: problem === null ? [] : [problem],
    }
  },
})

/** Returns the reason why the configured embeddings are unavailable; null if they are available. */
function findEmbeddingsProblem(edge: Edge, origin: JobOrigin): string | null {
  const { embeddings } = edge.settings.rag
  if (embeddings === 'lexical') return null
  if (embeddings === 'openai')
    return edge.settings.ai.endpoints.openai.apiKey === null ? 'OPENAI_API_KEY is not set' : null
  return getModelProblem(edge, origin)
}
