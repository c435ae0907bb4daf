import { z } from 'zod'
import { WEBHOOK_EVENTS } from '../../../sql/webhooks/webhooks.ts'
import { LongRowId, Timestamp } from '../../pipeline/request/schemas.ts'

/** Shapes of the requests and responses of the webhook routes. */

export const EndpointParams = z.object({ endpoint_id: LongRowId })
export const DeliveryParams = z.object({ endpoint_id: LongRowId, delivery_id: LongRowId })

const Events = z.array(z.enum(WEBHOOK_EVENTS)).min(1).max(WEBHOOK_EVENTS.length)
// The handler checks the URL, because settings decide which URLs are allowed.
const Url = z.string().min(1).max(2000)
const Description = z.string().trim().max(500)

/** `service` endpoints receive the events of all accounts. */
export const EndpointScope = z.enum(['account', 'service'])

export const NewEndpoint = z
  .strictObject({
    url: Url,
    events: Events,
    description: Description.optional(),
    organization_id: z.int().min(1).max(2_147_483_647).optional(),
    scope: EndpointScope.default('account'),
  })
  .meta({ id: 'WebhookCreate' })

export const EndpointChange = z
  .strictObject({
    url: Url.optional(),
    events: Events.optional(),
    description: Description.nullable().optional(),
    is_active: z.boolean().optional(),
  })
  .meta({ id: 'WebhookUpdate' })

export const TestRequest = z
  .strictObject({ type: z.enum(WEBHOOK_EVENTS).optional() })
  .meta({ id: 'WebhookTest' })

const endpointFields = {
  id: z.int(),
  scope: EndpointScope,
  account_id: z.int().nullable().meta({ description: 'Null for an endpoint of the service' }),
  organization_id: z.int().nullable(),
  url: z
    .string()
    .nullable()
    .meta({ description: 'Null for the endpoint of callbacks, which have their own URLs' }),
  events: z.array(z.string()),
  description: z.string().nullable(),
  is_active: z.boolean(),
  failures: z.int().meta({ description: 'Consecutive failed attempts' }),
  failing_since: Timestamp.nullable(),
  proved_at: Timestamp.nullable().meta({
    description:
      'When the receiver echoed the token of a challenge; null: not yet, and its delivery rate is low',
  }),
  paused_until: Timestamp.nullable().meta({
    description: 'When the pause ends that the receiver asked for with `Retry-After`; null if it never did',
  }),
  disabled_at: Timestamp.nullable().meta({
    description: 'When the service disabled it; null if it did not',
  }),
  secret_rolled_at: Timestamp.nullable(),
  created_at: Timestamp,
  updated_at: Timestamp.nullable(),
}
export const Endpoint = z.strictObject(endpointFields).meta({ id: 'Webhook' })
const secretField = z.string().meta({ description: 'Signs the messages; shown only once' })
export const CreatedEndpoint = z
  .strictObject({ ...endpointFields, secret: secretField })
  .meta({ id: 'WebhookCreated' })

export const RolledSecret = z
  .strictObject({
    endpoint_id: z.int(),
    version: z.int().describe('Starts at 1; each rotation adds 1'),
    secret: secretField,
  })
  .meta({ id: 'WebhookSecret' })

const EndpointResponse = z
  .strictObject({
    at: Timestamp,
    ms: z.int(),
    status: z.int().nullable(),
    retry_after: z
      .int()
      .optional()
      .meta({ description: 'Seconds that the receiver asked to wait; absent if it did not' }),
    body: z.string().nullable().meta({ description: 'At most the first KiB; null without an answer' }),
    error: z.string().nullable(),
  })
  .meta({ id: 'WebhookAnswer' })

const deliveryFields = {
  id: z.int(),
  message_id: z.uuid().meta({ description: 'The header `webhook-id`, the same in each attempt' }),
  type: z.string(),
  url: z.string().nullable().meta({ description: 'URL of a callback; null: the URL of the endpoint' }),
  status: z.enum(['pending', 'delivered', 'failed']),
  attempts: z.int(),
  due_at: Timestamp.nullable(),
  created_at: Timestamp,
  ended_at: Timestamp.nullable(),
  last_answer: EndpointResponse.nullable(),
}
export const Delivery = z.strictObject(deliveryFields).meta({ id: 'WebhookDelivery' })
export const DeliveryDetails = z
  .strictObject({
    ...deliveryFields,
    body: z.string().meta({ description: 'Body of the request' }),
    answers: z.array(EndpointResponse),
  })
  .meta({ id: 'WebhookDeliveryDetails' })
