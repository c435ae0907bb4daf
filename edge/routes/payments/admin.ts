import { z } from 'zod'
import {
  OPEN_DISPUTE_STATUSES,
  readDisputeAsAdmin,
  readDisputesAsAdmin,
  readRevenue,
  readSubscriptionsAsAdmin,
  readSummary,
  readTransactionAsAdmin,
  readTransactionsAsAdmin,
  scopeOf,
} from '../../../sql/payments/payments.ts'
import { Transaction } from '../../../tasks/payments/shapes.ts'
import { buildPageValues, buildTimeRangeRule } from '../../pipeline/request/lists.ts'
import { RowId } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { disputeFilters } from './disputes.ts'
import { REFUND_DESCRIPTION, REFUND_ERRORS, Refund, requestRefund } from './refund.ts'
import {
  AdminDispute,
  AdminDisputeList,
  AdminSubscriptionList,
  AdminTransaction,
  AdminTransactionList,
  answerRow,
  RevenueSeries,
  RowParams,
  Summary,
} from './shapes.ts'
import { subscriptionFilters } from './subscriptions.ts'
import { RevenueQuery, readStatus } from './summary.ts'
import { planTransactionList, transactionFilters } from './transactions.ts'

const accountFilter = {
  account_id: RowId.optional().meta({ description: 'Only rows of this account' }),
}

/** Routes for the payments of all accounts and of guests. */
export const adminRoutes = [
  route({
    method: 'get',
    path: '/admin/transactions',
    auth: 'admin',
    summary: 'List the transactions of all accounts',
    description: 'Sorted newest first unless `sort` is given. `account_id` is null without an account.',
    query: z.object({ ...transactionFilters, ...accountFilter }).refine(...buildTimeRangeRule('created_at')),
    response: AdminTransactionList,
    reads: 'list',
    handle: async ({ query, reader }) => {
      const { statement, values } = planTransactionList(query, readTransactionsAsAdmin)
      const account = query.account_id ?? null
      return answerJson((await reader.text(statement[scopeOf(account)], [account, ...values]))!)
    },
  }),

  route({
    method: 'get',
    path: '/admin/transactions/:id',
    auth: 'admin',
    summary: 'Get a transaction of any account',
    params: RowParams,
    response: AdminTransaction,
    errors: ['transaction.missing'],
    handle: async ({ params, edge }) =>
      answerRow(await edge.reader.text(readTransactionAsAdmin.all, [null, params.id]), 'transaction.missing'),
  }),

  route({
    method: 'post',
    path: '/admin/refund/:id',
    auth: 'admin',
    summary: 'Refund a payment of any account',
    description: REFUND_DESCRIPTION,
    params: RowParams,
    body: Refund.default({}),
    response: Transaction,
    errors: REFUND_ERRORS,
    sideEffect: true,
    job: (input) => requestRefund(input, null),
  }),

  route({
    method: 'get',
    path: '/admin/subscriptions',
    auth: 'admin',
    summary: 'List the subscriptions of all accounts, newest first',
    query: z.object({ ...subscriptionFilters, ...accountFilter }),
    response: AdminSubscriptionList,
    reads: 'list',
    handle: async ({ query, reader }) => {
      const account = query.account_id ?? null
      const values = [account, query.status ?? null, ...buildPageValues(query)] as const
      return answerJson((await reader.text(readSubscriptionsAsAdmin[scopeOf(account)], values))!)
    },
  }),

  route({
    method: 'get',
    path: '/admin/disputes',
    auth: 'admin',
    summary: 'List the disputes of all accounts, newest first',
    description: `\`open\` stands for ${OPEN_DISPUTE_STATUSES.join(', ')}.`,
    query: z.object({ ...disputeFilters, ...accountFilter }),
    response: AdminDisputeList,
    reads: 'list',
    handle: async ({ query, reader }) => {
      const account = query.account_id ?? null
      const values = [account, query.status ?? null, ...buildPageValues(query)] as const
      return answerJson((await reader.text(readDisputesAsAdmin[scopeOf(account)], values))!)
    },
  }),

  route({
    method: 'get',
    path: '/admin/disputes/:id',
    auth: 'admin',
    summary: 'Get a dispute or early fraud warning of any account',
    params: RowParams,
    response: AdminDispute,
    errors: ['dispute.missing'],
    handle: async ({ params, edge }) =>
      answerRow(await edge.reader.text(readDisputeAsAdmin.all, [null, params.id]), 'dispute.missing'),
  }),

  route({
    method: 'get',
    path: '/admin/status',
    auth: 'admin',
    summary: 'Get payment status and totals of all accounts',
    description: `As \`GET /api/v1/payment/status\`, with the totals of all accounts and of guests. \`ignored_events\` counts \
the provider's events for connected accounts and for the other mode. \`missing_rights\` names the rights that the provider's \
key lacks, checked every 10 minutes.`,
    response: Summary,
    reads: 'statistics',
    mayLag: true,
    handle: ({ edge, reader }) =>
      readStatus(readSummary.all, { ownerId: null, edge, reader, mayRefund: true }),
  }),

  route({
    method: 'get',
    path: '/admin/revenue-timeseries',
    auth: 'admin',
    summary: 'Get daily revenue of all accounts',
    description: 'As `GET /api/v1/payment/revenue-timeseries`, for all accounts and guests.',
    query: RevenueQuery,
    response: RevenueSeries,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ query, reader }) =>
      answerJson((await reader.text(readRevenue.all, [null, query.days, query.currency ?? null]))!),
  }),
]
