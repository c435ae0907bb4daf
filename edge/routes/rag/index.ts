import { area } from '../../pipeline/route.ts'
import { collectionRoutes } from './collections.ts'
import { healthRoute } from './health.ts'
import { indexRoute } from './index-collection.ts'
import { searchRoute } from './search.ts'

export const rag = area('rag', '/rag', { auth: 'open' }, [
  indexRoute,
  searchRoute,
  ...collectionRoutes,
  healthRoute,
])
