import { area } from '../pipeline/route.ts'
import { deliveryRoutes } from './webhooks/deliveries.ts'
import { endpointRoutes } from './webhooks/endpoints.ts'

export const webhooks = area('webhooks', '/api/v1/webhooks', { auth: 'user' }, [
  ...endpointRoutes,
  ...deliveryRoutes,
])
