import { area } from '../../pipeline/route.ts'
import { changeRoutes } from './change.ts'
import { detailRoutes } from './details.ts'
import { recordRoutes } from './records.ts'
import { searchRoutes } from './search.ts'
import { streamRoutes } from './streams.ts'

/** Routes that read, search, change, cancel, retry and watch background jobs. */
export const jobs = area('jobs', '/api/v1/jobs', { auth: 'open' }, [
  ...searchRoutes,
  ...recordRoutes,
  ...changeRoutes,
  ...detailRoutes,
  ...streamRoutes,
])
