import { readRagCounts } from '../../../sql/rag.ts'
import { route } from '../../route.ts'
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
  response: Health,
  handle: async ({ edge }) => {
    const { embeddings, model } = edge.settings.rag
    const counts = JSON.parse((await edge.reader.text(readRagCounts, []))!) as Counts
    return {
      service: 'rag' as const,
      status: 'healthy' as const,
      embeddings,
      active_embeddings: 'lexical' as const,
      model,
      ...counts,
      configuration_valid: true,
      validation_errors: [],
    }
  },
})
