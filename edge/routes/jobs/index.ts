import { area } from '../../pipeline/route.ts'
import { adminRoutes } from './admin.ts'
import { detailRoutes } from './details.ts'
import { recordRoutes } from './records.ts'
import { streamRoutes } from './streams.ts'

/** Routes that read, search, cancel, retry and watch background jobs. */
export const jobs = area('jobs', '/api/v1/jobs', { auth: 'open' }, [
  ...adminRoutes,
  ...recordRoutes,
  ...detailRoutes,
  ...streamRoutes,
])
