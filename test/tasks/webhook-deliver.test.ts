import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { fail } from '../../sql/errors.ts'
import type { WebhookRates } from '../../sql/webhooks/webhooks.ts'
import { run } from '../../tasks/webhooks/deliver.work.ts'
import type { PostWebhook, WebhookResponse } from '../../tasks/webhooks/ports.ts'
import { SEALED_TEXT, TEST_KEYS } from '../keys.ts'
import { createWebhookDatabase, RETRY_DELAYS_MS } from '../sql/webhooks-help.ts'

/** Only the answer of a receiver, or its absence, costs an attempt. */

const webhookDatabase = await createWebhookDatabase()
const { db, query, endpoint, delivery, deliveries } = webhookDatabase
beforeEach(() => webhookDatabase.fresh())

const REFUSED = { ms: 1, status: null, body: null, error: 'The connection failed (ECONNREFUSED)' }
const answered = (status: number, more: object = {}): WebhookResponse => ({
  ...{ ms: 1, status, body: '', error: null },
  ...more,
})
const NO_RATES: WebhookRates = { verified: null, unverified: null }

interface Attempt {
  readonly post: PostWebhook
  readonly rates?: WebhookRates
  readonly signal?: AbortSignal
}

const deliverAll = (id: number, { post, rates = NO_RATES, signal }: Attempt) =>
  run(
    {
      ...{ db, keys: TEST_KEYS, job: { requestId: null }, reportProgress: () => {} },
      settings: { webhooks: { timeoutMs: 1000, rates, retryMs: RETRY_DELAYS_MS } },
      signal: signal ?? new AbortController().signal,
      providers: { postWebhook: post },
    } as never,
    { endpoint_id: id, host: 'example.com' },
  )

const readAttempts = async () =>
  (await deliveries()).map(({ status, attempts }) => [status, attempts] as const)

test('a refused connection costs an attempt, and the delivery stays pending for its whole period', async () => {
  const id = await endpoint(['job.done'])
  await delivery(id)
  await deliverAll(id, { post: async () => REFUSED })
  assert.deepEqual(await readAttempts(), [['pending', 1]])
})

test('a shutdown before the answer costs no attempt', async () => {
  const id = await endpoint(['job.done'])
  await delivery(id)
  const abort = new AbortController()
  const post: PostWebhook = async () => {
    abort.abort()
    return { ms: 1, status: null, body: null, error: 'The attempt was cut short' }
  }
  for (let n = 0; n <= RETRY_DELAYS_MS.length + 1; n++) {
    await query('update webhook_delivery set due_at = now()')
    await deliverAll(id, { post, signal: abort.signal })
  }
  assert.deepEqual(await readAttempts(), [['pending', 0]])
  assert.deepEqual(await query('select failures from webhook_endpoint'), [{ failures: 0 }])
})

test('a shutdown after the answer has come records it', async () => {
  const id = await endpoint(['job.done'])
  await delivery(id)
  const abort = new AbortController()
  const post: PostWebhook = async () => {
    abort.abort()
    return answered(200)
  }
  await deliverAll(id, { post, signal: abort.signal })
  assert.deepEqual(await readAttempts(), [['delivered', 1]])
})

test('a shortage of the machine costs no attempt', async () => {
  const id = await endpoint(['job.done'])
  await delivery(id)
  const post: PostWebhook = () => Promise.reject(fail('service.short'))
  for (let n = 0; n <= RETRY_DELAYS_MS.length + 1; n++) {
    await query('update webhook_delivery set due_at = now()')
    await assert.rejects(deliverAll(id, { post }))
  }
  assert.deepEqual(await readAttempts(), [['pending', 0]])
})

test('a delivery that waits for the backoff, the pause or the rate limit of its endpoint costs no attempt', async () => {
  const id = await endpoint(['job.done'])
  await delivery(id)
  const post: PostWebhook = () => Promise.reject(new Error('It must not be sent'))
  for (const column of ['blocked_until', 'paused_until']) {
    await query(`update webhook_endpoint set ${column} = now() + interval '1 hour'`)
    await deliverAll(id, { post })
    await query(`update webhook_endpoint set ${column} = null`)
  }
  const rates = { ...NO_RATES, unverified: { max: 1, seconds: 60 } }
  await deliverAll(id, { post: async () => REFUSED, rates })
  await query('update webhook_delivery set due_at = now()')
  await deliverAll(id, { post, rates })
  assert.deepEqual(await readAttempts(), [['pending', 1]])
})

test('after 429, the other deliveries of the endpoint wait as well', async () => {
  const id = await endpoint(['job.done'])
  for (let n = 0; n < 10; n++) await delivery(id)
  let count = 0
  const post: PostWebhook = async () => {
    count++
    return count === 3 ? answered(429, { retry_after: 60 }) : answered(200)
  }
  await deliverAll(id, { post })
  assert.equal(count, 8, 'one batch')
  assert.deepEqual((await readAttempts()).map(([status]) => status).sort(), [
    ...Array(7).fill('delivered'),
    ...Array(3).fill('pending'),
  ])
})

test('a secret that no key opens costs an attempt, and nothing is sent', async () => {
  const id = await endpoint(['job.done'])
  await query('update webhook_endpoint set secret = $2 where id = $1', [id, SEALED_TEXT])
  await delivery(id)
  await deliverAll(id, { post: () => Promise.reject(new Error('It must not be sent')) })
  assert.deepEqual(await readAttempts(), [['pending', 1]])
  const [row] = await query(`select answers -> 0 ->> 'error' as error from webhook_delivery`)
  assert.equal(row!.error, 'the secret cannot be decrypted; rotate it')
})
