import { z } from 'zod'
import { readRevenue, readSummary, scopeOf } from '../../../sql/payments/payments.ts'
import { modeOf } from '../../../tasks/payments/settings.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { RevenueSeries, Summary } from './shapes.ts'

export const summaryRoutes = [
  route({
    method: 'get',
    path: '/status',
    summary: 'Get payment status and totals',
    description: `Totals cover the caller's payments. Revenue is payments less refunds, in the currency of most payments; \
\`per_currency\` lists all currencies. Amounts are in the smallest unit of their currency. \`ignored_events\` counts the \
provider's events for connected accounts and for the other mode, of the whole service. \`missing_rights\` names the \
rights that the provider's key lacks, checked every 10 minutes. \`unlinked_invoices\` counts paid invoices that are no \
revenue yet, because their payments are unknown.`,
    response: Summary,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ caller, edge, reader }) => {
      const key = edge.settings.payments.secretKey
      const values = [caller.ownerId, key !== undefined, modeOf(key) === 'test'] as const
      return answerJson((await reader.text(readSummary[scopeOf(caller.ownerId)], values))!)
    },
  }),

  route({
    method: 'get',
    path: '/revenue-timeseries',
    summary: 'Get daily revenue',
    description: `Days are in UTC and end with today; days without revenue are included. A refund counts on the day of \
its payment.`,
    query: z.object({
      days: count({ min: 1, max: 366, fallback: 30 }),
      currency: z
        .string()
        .regex(/^[A-Za-z]{3}$/, 'must be a three-letter currency code')
        .transform((code) => code.toLowerCase())
        .optional(),
    }),
    response: RevenueSeries,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ query, caller, reader }) => {
      const statement = readRevenue[scopeOf(caller.ownerId)]
      return answerJson((await reader.text(statement, [caller.ownerId, query.days, query.currency ?? null]))!)
    },
  }),
]
