import { readRagCounts } from '../../../sql/rag.ts'
import type { Edge } from '../../pipeline/context.ts'
import { route } from '../../pipeline/route.ts'
import { modelProblem } from './model-state.ts'
import type { Asking } from './question.ts'
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
  summary: 'Whether retrieval works, and how it is configured',
  description: `\`active_embeddings\` is what searches by meaning at present: \`lexical\` (words alone) also where the model of the \
settings cannot be had, which makes the status \`degraded\`, with the reason in \`validation_errors\`. It answers at once with what is known of \
the model, which is asked again meanwhile when that is older than 10 s.`,
  response: Health,
  handle: async ({ edge, caller, requestId }) => {
    const { embeddings, model } = edge.settings.rag
    const counts = JSON.parse((await edge.reader.text(readRagCounts, []))!) as Counts
    const problem = problemOf(edge, { ownerId: caller.ownerId, requestId })
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

/** Why there are no embeddings, though the settings want some; null when all is well. */
function problemOf(edge: Edge, asking: Asking): string | null {
  const { embeddings } = edge.settings.rag
  if (embeddings === 'lexical') return null
  if (embeddings === 'openai')
    return edge.settings.ai.endpoints.openai.apiKey === null ? 'OPENAI_API_KEY is not set' : null
  return modelProblem(edge, asking)
}
