import { area } from '../../pipeline/route.ts'
import { domainRoutes } from './domains.ts'
import { ledgerRoutes } from './ledger.ts'
import { sendRoutes } from './sends.ts'
import { suppressionRoutes } from './suppressions.ts'
import { templateRoutes } from './templates.ts'
import { webhookRoutes } from './webhooks.ts'

export const comms = area('comms', '/api/v1/comms', { auth: 'operator' }, [
  ...sendRoutes,
  ...ledgerRoutes,
  ...domainRoutes,
  ...suppressionRoutes,
  ...templateRoutes,
  ...webhookRoutes,
])
