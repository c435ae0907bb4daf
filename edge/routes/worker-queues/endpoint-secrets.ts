import type { StoredEndpoint } from '../../../sql/worker-queues/queues.ts'
import { createWebhookSecret } from '../../../tasks/webhooks/signature.ts'
import { validateWebhookUrl } from '../../../tasks/webhooks/url.ts'
import { sealUseOf } from '../../../tasks/worker-queues/endpoint.ts'
import { addSealed } from '../../pipeline/answer/sealed-answer.ts'
import type { Edge } from '../../pipeline/context.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import type { NewEndpoint, WorkerQueue } from './shapes.ts'

/** The secrets that sign requests to the endpoints of worker queues. */

/** Checks the URL of an endpoint and seals its secret. @throws fail('request.invalid') */
export function prepareEndpoint(
  { settings, keys }: Edge,
  queue: string,
  { url, concurrency, secret = createWebhookSecret() }: NewEndpoint,
): StoredEndpoint {
  const problem = validateWebhookUrl(url, settings.webhooks)
  if (problem !== null) throw failInvalidField('body', 'endpoint.url', problem, 'custom')
  return { url, concurrency, secret: keys.seal(sealUseOf(queue), secret) }
}

/** Adds the secret that the request has set to its answer, which `revealSealed` completes. */
export function addSecret(edge: Edge, text: string, stored: StoredEndpoint | null): string {
  if (stored === null) return text
  const { name, endpoint } = JSON.parse(text) as WorkerQueue
  const secret = edge.keys.unseal(sealUseOf(name), stored.secret)
  return addSealed(edge, text, { endpoint: { ...endpoint, secret } })
}
