import { area } from '../pipeline/route.ts'
import { exportRoute } from './blog/export.ts'
import { importRoute } from './blog/import.ts'
import { postRoutes } from './blog/posts.ts'
import { readRoutes } from './blog/reads.ts'
import { tagRoutes } from './blog/tags.ts'

export const blog = area('blog', '/api/v1/blog', { auth: 'editor' }, [
  ...readRoutes,
  ...postRoutes,
  ...tagRoutes,
  exportRoute,
  importRoute,
])
