import { area } from '../pipeline/route.ts'
import { adminRoutes } from './jobs/admin.ts'
import { detailRoutes } from './jobs/details.ts'
import { recordRoutes } from './jobs/records.ts'
import { streamRoutes } from './jobs/streams.ts'

/** Background jobs: reading, finding, cancelling, retrying and watching them. */
export const jobs = area(
  'jobs',
  '/api/v1/jobs',
  { auth: 'open', about: 'Background jobs: progress, results, cancellation and retries.' },
  [...adminRoutes, ...recordRoutes, ...detailRoutes, ...streamRoutes],
)
