import { area } from '../../pipeline/route.ts'
import { adminRoutes } from './admin.ts'
import { checkoutRoutes } from './checkout.ts'
import { disputeRoutes } from './disputes.ts'
import { portalRoute } from './portal.ts'
import { subscriptionRoutes } from './subscriptions.ts'
import { summaryRoutes } from './summary.ts'
import { transactionRoutes } from './transactions.ts'
import { webhookRoute } from './webhook.ts'

export const payments = area('payments', '/api/v1/payment', { auth: 'user' }, [
  ...checkoutRoutes,
  portalRoute,
  ...transactionRoutes,
  ...subscriptionRoutes,
  ...disputeRoutes,
  ...summaryRoutes,
  ...adminRoutes,
  webhookRoute,
])
