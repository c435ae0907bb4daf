import { z } from 'zod'
import {
  readTransaction,
  readTransactions,
  scopeOf,
  TRANSACTION_ORDERS,
  TRANSACTION_STATUSES,
} from '../../../sql/payments/payments.ts'
import { Transaction } from '../../../tasks/payments/shapes.ts'
import { findRoleFailure } from '../../pipeline/access/auth.ts'
import {
  buildPageQueryFields,
  buildPageValues,
  buildSortSchema,
  buildTimeRangeFields,
  buildTimeRangeRule,
} from '../../pipeline/request/lists.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { REFUND_DESCRIPTION, REFUND_ERRORS, Refund, requestRefund } from './refund.ts'
import { answerRow, PAGE_SIZES, RowParams, TransactionList } from './shapes.ts'

/** Filters and pages of a list of transactions. */
export const transactionFilters = {
  ...buildPageQueryFields(Object.values(TRANSACTION_ORDERS), PAGE_SIZES),
  status: z.enum(TRANSACTION_STATUSES).optional(),
  ...buildTimeRangeFields('Created'),
  sort: buildSortSchema(TRANSACTION_ORDERS),
}

const NEWEST_FIRST = { column: 'created_at', direction: 'desc' } as const

const TransactionQuery = z.object(transactionFilters).refine(...buildTimeRangeRule('created_at'))

/** Selects the statement of a list of transactions, and the values of its filters and page. */
export function planTransactionList<S>(
  query: z.output<typeof TransactionQuery>,
  statements: Readonly<Record<keyof typeof TRANSACTION_ORDERS, Readonly<Record<'asc' | 'desc', S>>>>,
) {
  const { status = null, from = null, to = null, sort = NEWEST_FIRST } = query
  const page = buildPageValues(query, TRANSACTION_ORDERS[sort.column])
  return {
    statement: statements[sort.column][sort.direction],
    values: [status, from, to, ...page] as const,
  }
}

/** Routes for payments and their refunds. */
export const transactionRoutes = [
  route({
    method: 'get',
    path: '/transactions',
    summary: 'List the transactions of the caller',
    description: 'Sorted newest first unless `sort` is given.',
    query: TransactionQuery,
    response: TransactionList,
    reads: 'list',
    handle: async ({ query, caller, reader }) => {
      const { statement, values } = planTransactionList(query, readTransactions)
      return answerJson((await reader.text(statement[scopeOf(caller.ownerId)], [caller.ownerId, ...values]))!)
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
    description: `${REFUND_DESCRIPTION} With \`PAYMENT_REFUNDS=admin\`, only admins may refund.`,
    params: RowParams,
    body: Refund.default({}),
    response: Transaction,
    errors: ['auth.forbidden', ...REFUND_ERRORS],
    sideEffect: true,
    job: (input) => {
      const { caller, edge } = input
      const refusal = edge.settings.payments.refunds === 'admin' ? findRoleFailure(caller, 'admin') : null
      if (refusal !== null) throw refusal
      return requestRefund(input, caller.ownerId)
    },
  }),
]
