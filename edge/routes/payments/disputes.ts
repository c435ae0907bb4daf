import { z } from 'zod'
import {
  DISPUTE_ORDER,
  OPEN_DISPUTE_STATUSES,
  readDispute,
  readDisputes,
  scopeOf,
} from '../../../sql/payments/payments.ts'
import { buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { answerRow, DISPUTE_STATUSES, Dispute, DisputeList, PAGE_SIZES, RowParams } from './shapes.ts'

/** Filters and pages of a list of disputes. */
export const disputeFilters = {
  ...buildPageQueryFields(DISPUTE_ORDER, PAGE_SIZES),
  status: z.enum(['open', ...DISPUTE_STATUSES]).optional(),
}

export const disputeRoutes = [
  route({
    method: 'get',
    path: '/disputes',
    summary: 'List payment disputes, newest first',
    description: `Lists disputes of the caller's payments. \`open\` stands for ${OPEN_DISPUTE_STATUSES.join(', ')}.`,
    query: z.object(disputeFilters),
    response: DisputeList,
    reads: 'list',
    handle: async ({ query, caller, reader }) => {
      const values = [caller.ownerId, query.status ?? null, ...buildPageValues(query)] as const
      return answerJson((await reader.text(readDisputes[scopeOf(caller.ownerId)], values))!)
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
      return answerRow(await edge.reader.text(statement, [caller.ownerId, params.id]), 'dispute.missing')
    },
  }),
]
