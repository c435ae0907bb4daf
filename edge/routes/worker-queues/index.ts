import { area } from '../../pipeline/route.ts'
import { claimRoute } from './claims.ts'
import { leaseRoutes } from './leases.ts'
import { queueRoutes } from './queues.ts'
import { taskRoutes } from './tasks.ts'

export const workerQueues = area('worker-queues', '/api/v1/worker-queues', { auth: 'user' }, [
  ...queueRoutes,
  ...taskRoutes,
  claimRoute,
])

export const workerLeases = area('worker-queues', '/api/v1/workers/leases', { auth: 'user' }, leaseRoutes)
