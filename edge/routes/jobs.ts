import { area } from '../pipeline/route.ts'
import { adminRoutes } from './jobs/admin.ts'
import { detailRoutes } from './jobs/details.ts'
import { recordRoutes } from './jobs/records.ts'
import { streamRoutes } from './jobs/streams.ts'

/** Routes that read, search, cancel, retry and watch background jobs. */
export const jobs = area('jobs', '/api/v1/jobs', { auth: 'open' }, [
  ...adminRoutes,
  ...recordRoutes,
  ...detailRoutes,
  ...streamRoutes,
])
