import { z } from 'zod'
import { readDispute, readDisputes, scopeOf } from '../../../sql/payments.ts'
import { json, route } from '../../pipeline/route.ts'
import { DISPUTE_STATUSES, Dispute, DisputeList, found, RowParams } from './shapes.ts'

// The statuses in which somebody still has to act.
const OPEN = ['warning_issued', 'needs_response', 'under_review']

export const disputeRoutes = [
  route({
    method: 'get',
    path: '/disputes',
    summary: 'List the disputes of the caller’s payments, newest first',
    description: `\`open\` stands for ${OPEN.join(', ')}. Returns at most 1000; \`total\` counts all.`,
    query: z.object({ status: z.enum(['open', ...DISPUTE_STATUSES]).optional() }),
    response: DisputeList,
    reads: 'list',
    handle: async ({ query, caller, reader }) => {
      const { status } = query
      const states = status === undefined ? null : status === 'open' ? OPEN : [status]
      const statement = readDisputes[scopeOf(caller.ownerId)]
      return json((await reader.text(statement, [caller.ownerId, states]))!)
    },
  }),

  route({
    method: 'get',
    path: '/disputes/:id',
    summary: 'Get a dispute or early fraud warning',
    params: RowParams,
    response: Dispute,
    errors: ['dispute.missing'],
    handle: async ({ params, caller, edge }) => {
      const statement = readDispute[scopeOf(caller.ownerId)]
      return found(await edge.reader.text(statement, [caller.ownerId, params.id]), 'dispute.missing')
    },
  }),
]
