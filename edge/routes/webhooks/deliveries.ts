import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import {
  DELIVERY_ORDER,
  type DeliveryType,
  lockManagedEndpoint,
  readDeliveries,
  readDelivery,
  redeliverWebhook,
} from '../../../sql/webhooks/webhooks.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerCompactJson, answerJson, route } from '../../pipeline/route.ts'
import { managerOf, requireEventScopes, requireOwnEndpoint } from './access.ts'
import { Delivery, DeliveryDetails, DeliveryParams, EndpointParams } from './shapes.ts'

/** Routes for webhook deliveries, including the responses from their endpoints. */
export const deliveryRoutes = [
  route({
    method: 'get',
    path: '/:endpoint_id/deliveries',
    allowsOrganizationKeys: true,
    summary: 'List deliveries, newest first',
    params: EndpointParams,
    query: z.object({
      status: z.enum(['pending', 'delivered', 'failed']).optional(),
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(DELIVERY_ORDER),
    }),
    response: z.array(Delivery),
    errors: ['webhook.missing', 'webhook.not_yours'],
    reads: 'list',
    handle: async ({ params, query, caller, reader, request }) => {
      const page = [buildCursorValues(query.cursor), 0, query.limit] as const
      const values = [params.endpoint_id, ...managerOf(caller), query.status ?? null, ...page] as const
      const text = await reader.text(readDeliveries, values)
      if (text === null) throw fail('webhook.missing')
      return answerArray(requireVisibleDeliveries(text), request)
    },
  }),

  route({
    method: 'get',
    path: '/:endpoint_id/deliveries/:delivery_id',
    allowsOrganizationKeys: true,
    summary: 'Get a delivery with its body and answers',
    description: 'An API key also needs the scope to read the area of its event.',
    params: DeliveryParams,
    response: DeliveryDetails,
    errors: ['webhook.delivery_missing', 'webhook.not_yours'],
    handle: async ({ params, caller, reader }) => {
      const values = [params.endpoint_id, ...managerOf(caller), params.delivery_id] as const
      const text = await reader.text(readDelivery, values)
      if (text === null) throw fail('webhook.delivery_missing')
      const { type } = JSON.parse(requireVisibleDeliveries(text)) as { type: DeliveryType }
      requireEventScopes(caller, [type])
      return answerCompactJson(text)
    },
  }),

  route({
    method: 'post',
    path: '/:endpoint_id/deliveries/:delivery_id/send',
    allowsOrganizationKeys: true,
    summary: 'Redeliver a webhook message',
    description:
      'Sends the same message with the same `webhook-id` immediately, and retries it for another day. An API key also needs the scope to read the area of its event.',
    params: DeliveryParams,
    response: Delivery,
    status: 202,
    errors: ['webhook.delivery_missing', 'webhook.not_yours'],
    sideEffect: true,
    handle: (input) =>
      input.transaction(async (tx) => {
        const { endpoint_id, delivery_id } = input.params
        const endpoint = await tx.maybeOne(lockManagedEndpoint(endpoint_id, managerOf(input.caller)))
        if (endpoint !== null) requireOwnEndpoint(input.caller, endpoint)
        const sent = endpoint && (await tx.maybeOne(redeliverWebhook(endpoint_id, delivery_id)))
        if (sent === null) throw fail('webhook.delivery_missing')
        requireEventScopes(input.caller, [sent.type])
        return answerJson(sent.json)
      }),
  }),
]

/**
 * Returns the JSON from a deliveries statement.
 * @throws webhook.not_yours if the caller manages the endpoint but may not see its deliveries.
 */
function requireVisibleDeliveries(text: string): string {
  if (text === 'none') throw fail('webhook.not_yours')
  return text
}
