import { area } from '../pipeline/route.ts'
import { checkoutRoutes } from './payments/checkout.ts'
import { disputeRoutes } from './payments/disputes.ts'
import { subscriptionRoutes } from './payments/subscriptions.ts'
import { summaryRoutes } from './payments/summary.ts'
import { transactionRoutes } from './payments/transactions.ts'
import { webhookRoute } from './payments/webhook.ts'

export const payments = area('payments', '/api/v1/payment', { auth: 'user' }, [
  ...checkoutRoutes,
  ...transactionRoutes,
  ...subscriptionRoutes,
  ...disputeRoutes,
  ...summaryRoutes,
  webhookRoute,
])
