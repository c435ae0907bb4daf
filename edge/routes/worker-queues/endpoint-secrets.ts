import { randomBytes } from 'node:crypto'
import type { StoredEndpoint } from '../../../sql/worker-queues/queues.ts'
import { seal, unseal } from '../../../tasks/platform/sealed.ts'
import { validateWebhookUrl } from '../../../tasks/webhooks/url.ts'
import { sealUseOf } from '../../../tasks/worker-queues/endpoint.ts'
import type { Edge } from '../../pipeline/context.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import type { NewEndpoint, WorkerQueue } from './shapes.ts'

/** The secrets that sign requests to the endpoints of worker queues. */

const SECRET_BYTES = 32

/** Checks the URL of an endpoint and seals its secret. @throws fail('request.invalid') */
export function prepareEndpoint(
  { settings, secretKey }: Edge,
  queue: string,
  { url, concurrency, secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}` }: NewEndpoint,
): StoredEndpoint {
  const problem = validateWebhookUrl(url, settings.webhooks)
  if (problem !== null) throw failInvalidField('body', 'endpoint.url', problem, 'custom')
  return { url, concurrency, secret: seal(secretKey, sealUseOf(queue), secret) }
}

/** Adds the sealed secret that the request has set. An answer that is stored for an Idempotency-Key has no other. */
export function addSecret(text: string, endpoint: StoredEndpoint | null): string {
  if (endpoint === null) return text
  const queue = JSON.parse(text) as WorkerQueue
  return JSON.stringify({ ...queue, endpoint: { ...queue.endpoint, secret: endpoint.secret } })
}

/** Unseals the secret of an answer. */
export function revealSecret({ secretKey }: Edge, text: string): string {
  const queue = JSON.parse(text) as WorkerQueue
  const sealed = queue.endpoint?.secret
  if (sealed === undefined) return text
  const secret = unseal(secretKey, sealUseOf(queue.name), sealed) ?? undefined
  return JSON.stringify({ ...queue, endpoint: { ...queue.endpoint, secret } })
}
