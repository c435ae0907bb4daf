import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { linkRefundToJob, reserveRefund } from '../../../sql/payments/changes.ts'
import {
  readTransaction,
  readTransactions,
  scopeOf,
  TRANSACTION_ORDERS,
  TRANSACTION_STATUSES,
} from '../../../sql/payments/payments.ts'
import { refundPayment } from '../../../tasks/payments/refund.task.ts'
import { Transaction } from '../../../tasks/payments/shapes.ts'
import { enqueue } from '../../../tasks/task.ts'
import {
  buildPageQueryFields,
  buildPageValues,
  buildSortSchema,
  buildTimeRangeFields,
  buildTimeRangeRule,
} from '../../pipeline/request/lists.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import {
  answerRow,
  PAGE_SIZES,
  PROVIDER_ERRORS,
  RowParams,
  requireProvider,
  TransactionList,
} from './shapes.ts'

// The provider accepts no larger amount.
const MAX_AMOUNT = 999_999_999_999

const Refund = z
  .strictObject({
    amount: z.int().min(1).max(MAX_AMOUNT).optional(),
    // The provider stores at most 500 characters.
    reason: z.string().trim().min(1).max(500).optional(),
  })
  .meta({ id: 'RefundRequest' })

const NEWEST_FIRST = { column: 'created_at', direction: 'desc' } as const

/** Routes for payments and their refunds. */
export const transactionRoutes = [
  route({
    method: 'get',
    path: '/transactions',
    summary: 'List the transactions of the caller',
    description: 'Sorted newest first unless `sort` is given.',
    query: z
      .object({
        ...buildPageQueryFields(Object.values(TRANSACTION_ORDERS), PAGE_SIZES),
        status: z.enum(TRANSACTION_STATUSES).optional(),
        ...buildTimeRangeFields('Created'),
        sort: buildSortSchema(TRANSACTION_ORDERS),
      })
      .refine(...buildTimeRangeRule('created_at')),
    response: TransactionList,
    reads: 'list',
    handle: async ({ query, caller, reader }) => {
      const { status = null, from = null, to = null, sort = NEWEST_FIRST } = query
      const page = buildPageValues(query, TRANSACTION_ORDERS[sort.column])
      const statement = readTransactions[sort.column][sort.direction][scopeOf(caller.ownerId)]
      return answerJson((await reader.text(statement, [caller.ownerId, status, from, to, ...page]))!)
    },
  }),

  route({
    method: 'get',
    path: '/transactions/:id',
    summary: 'Get a transaction',
    params: RowParams,
    response: Transaction,
    errors: ['transaction.missing'],
    handle: async ({ params, caller, edge }) => {
      const statement = readTransaction[scopeOf(caller.ownerId)]
      return answerRow(await edge.reader.text(statement, [caller.ownerId, params.id]), 'transaction.missing')
    },
  }),

  route({
    method: 'post',
    path: '/refund/:id',
    summary: 'Refund a payment fully or partially',
    description: `Without an amount, refunds the remaining amount. The reason is \`requested_by_customer\`, \
\`duplicate\`, \`fraudulent\`, or a note. Returns the refund, which is a separate transaction.`,
    params: RowParams,
    body: Refund.default({}),
    response: Transaction,
    errors: [
      'transaction.missing',
      'transaction.not_refundable',
      'transaction.refund_too_large',
      ...PROVIDER_ERRORS,
    ],
    sideEffect: true,
    job: async ({ params, body, caller, edge, tx, requestId }) => {
      const { amount = null, reason = null } = body
      const reserved = await tx.maybeOne(reserveRefund(params.id, caller.ownerId, amount, reason))
      if (reserved === null) throw fail('transaction.missing')
      const { refund_id, problem, status, available } = reserved
      if (problem === 'status') throw fail('transaction.not_refundable', { status })
      if (refund_id === null)
        throw fail('transaction.refund_too_large', { available: Math.max(0, available) })
      requireProvider(edge.settings)
      const ref = await enqueue(
        tx,
        refundPayment,
        { refund_id, transaction_id: params.id },
        { ownerId: caller.ownerId, requestId, settings: edge.settings },
      )
      await tx.run(linkRefundToJob(refund_id, ref.jobId))
      return ref
    },
  }),
]
