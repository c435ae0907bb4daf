import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { listDueEndpoints, recordDeliveryAttempt, updateEndpoint } from '../../sql/webhooks/webhooks.ts'
import { ANSWER, createWebhookDatabase, RETRY_DELAYS_MS } from './webhooks-help.ts'

/** A receiver's `Retry-After` delays the next attempt; with 429 or 503, it pauses the endpoint. */

const webhookDatabase = await createWebhookDatabase()
const { db, query, insert, endpoint, delivery, take } = webhookDatabase
beforeEach(() => webhookDatabase.fresh())

const DAY_SECONDS = 86_400
const settle = async (
  id: number,
  status: number,
  retryAfter?: number,
  outcome: 'failed' | 'gone' = 'failed',
) => {
  const answer = { ...ANSWER, status, ...(retryAfter === undefined ? {} : { retry_after: retryAfter }) }
  return (await db.one(recordDeliveryAttempt(id, outcome, answer, RETRY_DELAYS_MS))).end
}
const readDelay = async (id: number) =>
  Number(
    (
      await query(
        'select round(extract(epoch from due_at - now()))::int as seconds from webhook_delivery where id = $1',
        [id],
      )
    )[0]!.seconds,
  )
const readPause = async (id: number) =>
  (
    await query(
      'select round(extract(epoch from paused_until - now()))::int as seconds from webhook_endpoint where id = $1',
      [id],
    )
  )[0]!.seconds

test('a longer Retry-After replaces the delay, whatever the status, and at most a day', async () => {
  const id = await endpoint(['job.done'])
  for (const [status, asked, expected] of [
    [429, 3600, 3600],
    [503, 3600, 3600],
    [500, 3600, 3600],
    [301, 3600, 3600],
    [429, 999_999_999, DAY_SECONDS],
  ] as const) {
    const one = await delivery(id)
    assert.equal(await settle(one, status, asked), 'pending')
    const delay = await readDelay(one)
    assert.ok(Math.abs(delay - expected) < 10, `${status}: ${delay} s`)
  }
})

test('a shorter Retry-After does not shorten the delay', async () => {
  const id = await endpoint(['job.done'])
  const one = await delivery(id)
  await settle(one, 429, 0)
  assert.ok((await readDelay(one)) >= 89)
})

test('429 and 503 pause the endpoint, and later answers do not end the pause early', async () => {
  const id = await endpoint(['job.done'])
  const [one, two, three, four] = [
    await delivery(id),
    await delivery(id),
    await delivery(id),
    await delivery(id),
  ]
  await settle(one, 500, 600)
  assert.equal(await readPause(id), null)
  await settle(one, 503, 600)
  await settle(two, 429, 60)
  await db.one(recordDeliveryAttempt(three, 'delivered', { ...ANSWER, status: 200 }, RETRY_DELAYS_MS))
  assert.ok(Math.abs(Number(await readPause(id)) - 600) < 10)
  assert.deepEqual([await db.any(listDueEndpoints()), await take(id)], [[], []])
  await query(`update webhook_endpoint set paused_until = now()`)
  assert.deepEqual(
    (await take(id)).map((each) => each.id),
    [four],
  )
})

test('a new URL or activation ends the pause', async () => {
  for (const fields of [{ is_active: true }, { url: 'https://example.com/2', host: 'example.com' }]) {
    const id = await endpoint(['job.done'])
    await settle(await delivery(id), 503, 600)
    await db.one(updateEndpoint(id, { description: 'the same' }))
    assert.notEqual(await readPause(id), null)
    await db.one(updateEndpoint(id, fields))
    assert.equal(await readPause(id), null)
  }
})

test('the last attempt and 410 need no Retry-After', async () => {
  const id = await endpoint(['job.done'])
  const one = await delivery(id)
  await query('update webhook_delivery set attempts = 3')
  assert.equal(await settle(one, 503, 600), 'failed')
  assert.equal(await settle(await delivery(id), 410, 600, 'gone'), 'disabled')
})

test('the URL of one callback does not pause the others', async () => {
  const callbacks = await insert(
    `webhook_endpoint (secret, account_id, events) values ('aaaaaaaa.AAAA', $1, '{}')`,
    [webhookDatabase.owner],
  )
  const call = () =>
    insert(
      `webhook_delivery (endpoint_id, type, url, host, body) values ($1, 't', 'https://example.com/', 'example.com', '{}')`,
      [callbacks],
    )
  const [one, two] = [await call(), await call()]
  await settle(one, 429, 600)
  assert.ok((await readDelay(one)) > 500)
  assert.deepEqual(
    (await take(callbacks)).map(({ id }) => id),
    [two],
  )
})
