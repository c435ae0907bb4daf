import { z } from 'zod'
import type { Transaction } from '../../../sql/db.ts'
import { type ErrorCode, fail } from '../../../sql/errors.ts'
import { findOwnedSubscription } from '../../../sql/payments/changes.ts'
import { readSubscriptions, SUBSCRIPTION_ORDER, scopeOf } from '../../../sql/payments/payments.ts'
import { cancelSubscription } from '../../../tasks/payments/cancel.task.ts'
import { changePlan } from '../../../tasks/payments/plan.task.ts'
import { PRORATIONS } from '../../../tasks/payments/provider.ts'
import { resumeSubscription } from '../../../tasks/payments/resume.task.ts'
import { Cancellation, SUBSCRIPTION_STATUSES, Subscription } from '../../../tasks/payments/shapes.ts'
import { type EnqueueOptions, enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { answerJson, type Input, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import {
  PAGE_SIZES,
  PROVIDER_ERRORS,
  RowParams,
  requireFirstSubscription,
  requireProvider,
  SubscriptionList,
} from './shapes.ts'

/** Filters and pages of a list of subscriptions. */
export const subscriptionFilters = {
  ...buildPageQueryFields(SUBSCRIPTION_ORDER, PAGE_SIZES),
  status: z.enum(SUBSCRIPTION_STATUSES).optional(),
}

const PlanChange = z
  .strictObject({
    price_id: z.string().trim().min(1).max(255),
    proration: z.enum(PRORATIONS).default('create_prorations'),
    allow_second: z.boolean().default(false),
  })
  .meta({ id: 'PlanChange' })

const CHANGE_ERRORS = [
  'subscription.missing',
  'subscription.canceled',
  'subscription.unchangeable',
  ...PROVIDER_ERRORS,
] as const satisfies readonly ErrorCode[]

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
      const { tx } = input
      const { account_id: accountId, before, ids } = await findChangeable(input)
      const data = { ...ids, before, after: { cancel_at_period_end: true } }
      await tx.run(appendAuditEvent(input, 'subscription.cancel_requested', { accountId, data }))
      return enqueue(tx, cancelSubscription, ids, enqueueOptionsOf(input))
    },
  }),

  route({
    method: 'post',
    path: '/subscriptions/:id/resume',
    summary: 'Resume a subscription that is to end',
    description: 'Removes its set end, so that it renews again. Has no effect on one without a set end.',
    params: RowParams,
    response: Subscription,
    errors: CHANGE_ERRORS,
    sideEffect: true,
    alwaysWaits: true,
    job: async (input) => {
      const { tx } = input
      const { account_id: accountId, before, ids } = await findChangeable(input)
      const data = { ...ids, before, after: { cancel_at_period_end: false } }
      await tx.run(appendAuditEvent(input, 'subscription.resume_requested', { accountId, data }))
      return enqueue(tx, resumeSubscription, ids, enqueueOptionsOf(input))
    },
  }),

  route({
    method: 'post',
    path: '/subscriptions/:id/plan',
    summary: 'Change the plan of a subscription',
    description: `Replaces its price. \`proration\` says how the rest of the period is charged: with the next invoice, not at \
all, or with an invoice of its own. The account may not have another running subscription of the price, unless \
\`allow_second\` is given.`,
    params: RowParams,
    body: PlanChange,
    response: Subscription,
    errors: ['subscription.running', ...CHANGE_ERRORS],
    sideEffect: true,
    alwaysWaits: true,
    job: async (input) => {
      const { body, params, tx } = input
      const { account_id: accountId, before, ids, plan_name } = await findChangeable(input)
      const { allow_second, ...plan } = body
      if (!allow_second) await requireFirstSubscription(tx, accountId, plan.price_id, params.id)
      const data = { ...ids, before: { ...before, plan_name }, after: plan }
      await tx.run(appendAuditEvent(input, 'subscription.plan_change_requested', { accountId, data }))
      return enqueue(tx, changePlan, { ...ids, ...plan }, enqueueOptionsOf(input))
    },
  }),
]

type ChangeInput = Input<z.output<typeof RowParams>, undefined, unknown, Caller> & {
  readonly tx: Transaction
}

const enqueueOptionsOf = ({ caller, requestId, edge }: ChangeInput): EnqueueOptions => ({
  ownerId: caller.ownerId,
  requestId,
  settings: edge.settings,
})

/** Returns the caller's subscription that a request is to change, with its ids and its state for the audit log. */
async function findChangeable({ params, caller, edge, tx }: ChangeInput) {
  const found = await tx.maybeOne(findOwnedSubscription(params.id, caller.ownerId))
  if (found === null) throw fail('subscription.missing')
  const { id, provider_subscription_id, status, cancel_at_period_end, ...more } = found
  if (status === 'canceled') throw fail('subscription.canceled')
  requireProvider(edge.settings)
  const ids = { subscription_id: id, provider_subscription_id }
  return { ...more, ids, before: { status, cancel_at_period_end } }
}
