import { area } from '../pipeline/route.ts'
import { domainRoutes } from './comms/domains.ts'
import { ledgerRoutes } from './comms/ledger.ts'
import { sendRoutes } from './comms/sends.ts'
import { suppressionRoutes } from './comms/suppressions.ts'
import { templateRoutes } from './comms/templates.ts'
import { webhookRoutes } from './comms/webhooks.ts'

export const comms = area('comms', '/api/v1/comms', { auth: 'operator' }, [
  ...sendRoutes,
  ...ledgerRoutes,
  ...domainRoutes,
  ...suppressionRoutes,
  ...templateRoutes,
  ...webhookRoutes,
])
