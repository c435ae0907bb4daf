import { DELIVERY_TYPES, type DeliveryType } from '../../sql/webhooks/webhooks.ts'
import { buildMessageSchema, MESSAGES } from '../routes/webhooks/events.ts'
import { makeExample } from './examples.ts'
import { type Json, toSchema } from './schemas.ts'

/** Generates the `webhooks` section of the reference: the messages that endpoints receive. */

const HEADERS = {
  'webhook-id': 'The id of the message, the same in each attempt',
  'webhook-timestamp': 'Time of the attempt, in seconds since the epoch',
  'webhook-signature':
    'Signatures `v1,BASE64`, separated by spaces: HMAC-SHA256 of `ID.TIMESTAMP.BODY`, one for each valid secret',
}

const RESPONSES = {
  '2XX': { description: 'The message is delivered. The head of the answer decides; its body may be empty' },
  410: { description: 'The endpoint is gone, and is disabled' },
  default: {
    description:
      'The message is retried. `Retry-After` delays it; with 429 or 503, it pauses the whole endpoint',
  },
}

export function buildWebhooks(components: Record<string, Json>): Json {
  return Object.fromEntries(DELIVERY_TYPES.map((type) => [type, { post: buildMessage(type, components) }]))
}

function buildMessage(type: DeliveryType, components: Record<string, Json>): Json {
  const schema = toSchema(buildMessageSchema(type), 'output', components)
  const example = makeExample(schema, components)
  return {
    tags: ['webhooks'],
    operationId: `receive_${type.replace('.', '_')}`,
    summary: MESSAGES[type].summary,
    security: [],
    parameters: Object.entries(HEADERS).map(([name, description]) => ({
      ...{ name, in: 'header', required: true, description, schema: { type: 'string' } },
    })),
    requestBody: { required: true, content: { 'application/json': { schema, example } } },
    responses: RESPONSES,
  }
}

/** Returns example data of a message, which its schema allows. */
export function makeMessageExample(type: DeliveryType): unknown {
  const components: Record<string, Json> = {}
  return makeExample(toSchema(MESSAGES[type].data, 'output', components), components)
}
