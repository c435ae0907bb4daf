import { area } from '../../pipeline/route.ts'
import { deliveryRoutes } from './deliveries.ts'
import { endpointRoutes } from './endpoints.ts'

export const webhooks = area('webhooks', '/api/v1/webhooks', { auth: 'user' }, [
  ...endpointRoutes,
  ...deliveryRoutes,
])
