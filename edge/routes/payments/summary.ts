import { z } from 'zod'
import { readRevenue, readSummary, scopeOf } from '../../../sql/payments/payments.ts'
import { modeOf } from '../../../tasks/payments/settings.ts'
import { type Caller, findRoleFailure } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerJson, type Input, route } from '../../pipeline/route.ts'
import { RevenueSeries, Summary } from './shapes.ts'

interface StatusInput {
  readonly ownerId: number | null
  readonly edge: Edge
  readonly reader: Input<unknown, unknown, unknown, Caller>['reader']
  readonly mayRefund: boolean
}

/** Reads the totals of a scope, with the state of the provider. */
export async function readStatus(
  statement: (typeof readSummary)['all'],
  { ownerId, edge, reader, mayRefund }: StatusInput,
): Promise<z.input<typeof Summary>> {
  const key = edge.settings.payments.secretKey
  const text = await reader.text(statement, [ownerId, key !== undefined, modeOf(key) === 'test'])
  const summary = JSON.parse(text!) as Omit<z.input<typeof Summary>, 'may_refund'>
  // Only admins see the state of the service's key and events.
  const hidden = ownerId === null ? {} : { ignored_events: [], missing_rights: [] }
  return { ...summary, ...hidden, may_refund: mayRefund }
}

/** Days and currency of a series. */
export const RevenueQuery = z.object({
  days: count({ min: 1, max: 366, fallback: 30 }),
  currency: z
    .string()
    .regex(/^[A-Za-z]{3}$/, 'must be a three-letter currency code')
    .transform((code) => code.toLowerCase())
    .optional(),
})

export const summaryRoutes = [
  route({
    method: 'get',
    path: '/status',
    summary: 'Get payment status and totals',
    description: `Totals cover the caller's payments. Revenue is payments less refunds, in the currency of most payments; \
\`per_currency\` lists all currencies. Amounts are in the smallest unit of their currency. \`unlinked_invoices\` counts paid \
invoices that are no revenue yet, because their payments are unknown. \`ignored_events\` and \`missing_rights\` are empty: \
\`GET /payment/admin/status\` has them.`,
    response: Summary,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ caller, edge, reader }) => {
      const mayRefund =
        edge.settings.payments.refunds === 'owner' || findRoleFailure(caller, 'admin') === null
      const statement = readSummary[scopeOf(caller.ownerId)]
      return readStatus(statement, { ownerId: caller.ownerId, edge, reader, mayRefund })
    },
  }),

  route({
    method: 'get',
    path: '/revenue-timeseries',
    summary: 'Get daily revenue',
    description: `Days are in UTC and end with today; days without revenue are included. A refund counts on the day of \
its payment.`,
    query: RevenueQuery,
    response: RevenueSeries,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ query, caller, reader }) => {
      const statement = readRevenue[scopeOf(caller.ownerId)]
      return answerJson((await reader.text(statement, [caller.ownerId, query.days, query.currency ?? null]))!)
    },
  }),
]
