import { area } from '../pipeline/route.ts'
import { recordRoutes } from './jobs/records.ts'
import { streamRoutes } from './jobs/streams.ts'

/** Background jobs: what there is, what becomes of it, and what to do about it. */
export const jobs = area('jobs', '/api/v1/jobs', { auth: 'open' }, [...recordRoutes, ...streamRoutes])
