import { area } from '../../pipeline/route.ts'
import { exportRoute } from './export.ts'
import { syndicationRoutes } from './feeds.ts'
import { importRoute } from './import.ts'
import { postRoutes } from './posts.ts'
import { previewRoutes } from './previews.ts'
import { readRoutes } from './reads.ts'
import { revisionRoutes } from './revisions.ts'
import { tagRoutes } from './tags.ts'

export const blog = area('blog', '/api/v1/blog', { auth: 'editor' }, [
  ...readRoutes,
  ...postRoutes,
  ...previewRoutes,
  ...revisionRoutes,
  ...syndicationRoutes,
  ...tagRoutes,
  exportRoute,
  importRoute,
])
