import type { z } from 'zod'
import { pause } from '../../client/connection.ts'
import type {
  DeliveryDetails as DeliverySchema,
  Endpoint as EndpointSchema,
} from '../../routes/webhooks/shapes.ts'
import { defineCommand, type Input } from '../command.ts'
import { parseEvent } from '../events.ts'
import { STATUS, UsageError } from '../io.ts'
import { clean } from '../output.ts'

type Endpoint = z.output<typeof EndpointSchema>
type Delivery = z.output<typeof DeliverySchema>

const POLL_MS = 250
const WAIT_MS = 20_000

export const trigger = defineCommand({
  args: 'EVENT',
  about: 'Sends a test event to the active endpoints that receive EVENT, and shows their answers.',
  notes: `Its type is webhook.test, and its data has the type EVENT and the example data of such an event.
A key also needs the scope to read that, such as jobs:read.`,
  options: { endpoint: { value: 'ID', about: 'only to this endpoint, whatever events it receives' } },
  example: 'webhooks trigger job.done',
  scopes: ['webhooks:write'],
  run: async (input) => {
    const event = parseEvent(input.args[0]!)
    const endpoints = await findEndpoints(input, event)
    if (endpoints.length === 0)
      throw new UsageError(
        `No active endpoint of the account receives ${event}. Run: npx millrace webhooks listen --forward URL`,
      )
    const statuses = await Promise.all(endpoints.map((endpoint) => sendTest(input, endpoint, event)))
    return Math.max(...statuses)
  },
})

async function findEndpoints({ api, values }: Input, event: string): Promise<readonly Endpoint[]> {
  const { endpoint } = values as { readonly endpoint?: string }
  if (endpoint !== undefined) {
    if (!/^\d{1,18}$/.test(endpoint))
      throw new UsageError(`--endpoint must be the number of an endpoint, not ${endpoint}`)
    return [await api.call<Endpoint>('GET', `/api/v1/webhooks/${endpoint}`)]
  }
  const all = await api.call<Endpoint[]>('GET', '/api/v1/webhooks', { query: { limit: 1000 } })
  return all.filter(({ is_active, url, events }) => is_active && url !== null && events.includes(event))
}

/** Sends a test event and waits for its first answer. */
async function sendTest({ api, io, out }: Input, { id, url }: Endpoint, type: string): Promise<number> {
  const path = `/api/v1/webhooks/${id}`
  const { id: sent } = await api.call<Delivery>('POST', `${path}/test`, { body: { type } })
  const deadline = io.now() + WAIT_MS
  let delivery: Delivery
  do {
    await pause(POLL_MS, io.signal)
    delivery = await api.call<Delivery>('GET', `${path}/deliveries/${sent}`, { isPatient: true })
  } while (delivery.attempts === 0 && io.now() < deadline)
  const { last_answer: answer, status } = delivery
  if (out.isJson) out.json(delivery)
  else {
    const text = answer === null ? 'no attempt yet' : `${answer.status ?? answer.error} in ${answer.ms} ms`
    const state = out.paint(status === 'delivered' ? 'green' : 'red', status)
    out.line(`${clean(`${type}  endpoint ${id}  ${url}`)}  ${state}: ${clean(text)}`)
  }
  return status === 'delivered' ? STATUS.done : STATUS.failed
}
