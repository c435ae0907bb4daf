import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { findOwnedSubscription } from '../../../sql/payments/changes.ts'
import { readSubscriptions, SUBSCRIPTION_ORDER, scopeOf } from '../../../sql/payments/payments.ts'
import { cancelSubscription } from '../../../tasks/payments/cancel.task.ts'
import { Cancellation } from '../../../tasks/payments/shapes.ts'
import { enqueue } from '../../../tasks/task.ts'
import { buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import {
  PAGE_SIZES,
  PROVIDER_ERRORS,
  RowParams,
  requireProvider,
  SUBSCRIPTION_STATUSES,
  SubscriptionList,
} from './shapes.ts'

/** Filters and pages of a list of subscriptions. */
export const subscriptionFilters = {
  ...buildPageQueryFields(SUBSCRIPTION_ORDER, PAGE_SIZES),
  status: z.enum(SUBSCRIPTION_STATUSES).optional(),
}

export const subscriptionRoutes = [
  route({
    method: 'get',
    path: '/subscriptions',
    summary: 'List the subscriptions of the caller, newest first',
    query: z.object(subscriptionFilters),
    response: SubscriptionList,
    reads: 'list',
    handle: async ({ query, caller, reader }) => {
      const values = [caller.ownerId, query.status ?? null, ...buildPageValues(query)] as const
      return answerJson((await reader.text(readSubscriptions[scopeOf(caller.ownerId)], values))!)
    },
  }),

  route({
    method: 'post',
    path: '/subscriptions/:id/cancel',
    summary: 'Cancel a subscription',
    description: 'It ends with the paid period, and does not change until then. A repeat has no effect.',
    params: RowParams,
    response: Cancellation,
    errors: ['subscription.missing', 'subscription.canceled', ...PROVIDER_ERRORS],
    sideEffect: true,
    alwaysWaits: true,
    job: async (input) => {
      const { params, caller, edge, tx, requestId } = input
      const subscription = await tx.maybeOne(findOwnedSubscription(params.id, caller.ownerId))
      if (subscription === null) throw fail('subscription.missing')
      if (subscription.status === 'canceled') throw fail('subscription.canceled')
      requireProvider(edge.settings)
      const {
        id,
        provider_subscription_id,
        status,
        cancel_at_period_end,
        account_id: accountId,
      } = subscription
      const before = { status, cancel_at_period_end }
      const data = {
        subscription_id: id,
        provider_subscription_id,
        before,
        after: { cancel_at_period_end: true },
      }
      await tx.run(appendAuditEvent(input, 'subscription.cancel_requested', { accountId, data }))
      return enqueue(
        tx,
        cancelSubscription,
        { subscription_id: id, provider_subscription_id },
        { ownerId: caller.ownerId, requestId, settings: edge.settings },
      )
    },
  }),
]
