import { area } from '../pipeline/route.ts'
import { collectionRoutes } from './rag/collections.ts'
import { healthRoute } from './rag/health.ts'
import { indexRoute } from './rag/index-collection.ts'
import { searchRoute } from './rag/search.ts'

export const rag = area('rag', '/rag', { auth: 'open' }, [
  indexRoute,
  searchRoute,
  ...collectionRoutes,
  healthRoute,
])
