import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { storePendingQuota } from '../../sql/quotas/quotas.ts'
import {
  insertEndpoint,
  listDueEndpoints,
  markEndpointVerified,
  updateEndpoint,
} from '../../sql/webhooks/webhooks.ts'
import { DEFAULT_QUOTAS } from '../job-settings.ts'
import { SEALED_TEXT } from '../keys.ts'
import { createWebhookDatabase } from './webhooks-help.ts'

/** Webhooks have limits, so that they cannot flood a target. Endpoints that an API key created end with the key. */

const webhookDatabase = await createWebhookDatabase()
const { db, query, ledger, account, endpoint, delivery, deliveries, callback, ended, settle, take } =
  webhookDatabase
beforeEach(() => webhookDatabase.fresh())

describe('rate limits', () => {
  const FEW = { verified: { max: 5, seconds: 60 }, unverified: { max: 2, seconds: 60 } }
  const addDeliveries = async (id: number, n: number) => {
    for (let i = 0; i < n; i++) await delivery(id)
  }
  const prove = (id: number) => db.run(markEndpointVerified(id, 'https://example.com/'))
  const skipMinute = () =>
    query('update webhook_rate set slots = array(select s - 61 from unnest(slots) s), blocked_until = now()')

  test('apply to account and host together, and the rest waits without being read', async () => {
    const [one, two] = [await endpoint(['job.done']), await endpoint(['job.done'])]
    await addDeliveries(one, 4)
    await addDeliveries(two, 4)
    assert.equal((await take(one, 8, FEW)).length, 2)
    assert.equal((await take(two, 8, FEW)).length, 0)
    assert.deepEqual(await db.any(listDueEndpoints()), [], 'the host rests')
    const other = await endpoint(['job.done'], await account())
    await addDeliveries(other, 1)
    assert.deepEqual(await db.any(listDueEndpoints()), [{ id: other, host: 'example.com' }])
    assert.equal((await take(other, 8, FEW)).length, 1)
    await skipMinute()
    assert.equal((await db.any(listDueEndpoints())).length, 2)
    assert.equal((await take(two, 8, FEW)).length, 2)
    assert.equal((await take(one, 8, FEW)).length, 0)
  })

  test('are higher for a verified endpoint, and for callbacks at its host', async () => {
    const [verified, unverified] = [await endpoint(['job.done']), await endpoint(['job.done'])]
    await prove(verified)
    await addDeliveries(verified, 3)
    await addDeliveries(unverified, 3)
    assert.equal((await take(verified, 8, FEW)).length, 3)
    assert.equal((await take(unverified, 8, FEW)).length, 0, 'they are counted together')
    const job = await ledger.add(webhookDatabase.owner)
    await db.run(callback(job, 'https://example.com/called'))
    await db.run(callback(job, 'https://elsewhere.example.com/called'))
    await ledger.claim(job)
    await ledger.finish(job, 'done')
    const [callbacks] = await query('select id::int from webhook_endpoint where url is null')
    assert.equal(
      (await take(Number(callbacks!.id), 8, { ...FEW, unverified: { max: 1, seconds: 60 } })).length,
      1,
    )
  })

  test('belong to the URL: a new URL is unverified, and gets the waiting deliveries', async () => {
    const id = await endpoint(['job.done'])
    await prove(id)
    await addDeliveries(id, 1)
    await db.one(updateEndpoint(id, { description: 'the same' }))
    const readProvedAt = async () =>
      (await query('select proved_at from webhook_endpoint where id = $1', [id]))[0]!.proved_at
    assert.notEqual(await readProvedAt(), null)
    await db.one(updateEndpoint(id, { url: 'https://moved.example.com/', host: 'moved.example.com' }))
    assert.equal(await readProvedAt(), null)
    await prove(id)
    assert.equal(await readProvedAt(), null, 'the echo of a challenge for the former URL')
    assert.deepEqual(await db.any(listDueEndpoints()), [{ id, host: 'moved.example.com' }])
  })

  test('of 0 send nothing, and none is exceeded by concurrent takers', async () => {
    const id = await endpoint(['job.done'])
    await addDeliveries(id, 12)
    const taken = await Promise.all(
      Array.from({ length: 6 }, () => take(id, 2, { ...FEW, unverified: { max: 7, seconds: 60 } })),
    )
    assert.equal(taken.flat().length, 7)
    assert.equal((await take(id, 8)).length, 5)
  })
})

describe('pending deliveries', () => {
  const limitPending = (value: number) =>
    db.run(storePendingQuota({ ...DEFAULT_QUOTAS, pending_deliveries: value }))

  test('are limited by the quota, within one event; others are dropped without an error', async () => {
    await limitPending(2)
    const [first, second] = [await endpoint(['job.done']), await endpoint(['job.done'])]
    await ended()
    await ended()
    assert.equal((await deliveries()).length, 2)
    const [one] = await deliveries(first)
    await settle(one!.id, 'delivered')
    await ended()
    assert.deepEqual([(await deliveries(first)).length, (await deliveries(second)).length], [2, 2])
    const other = await account()
    const theirs = await endpoint(['job.done'], other)
    await delivery(theirs)
    assert.equal((await deliveries(theirs)).length, 1, 'of another account')
    await query(`insert into account_quota (account_id, kind, quota) values ($1, 'pending_deliveries', 9)`, [
      webhookDatabase.owner,
    ])
    await ended()
    assert.equal((await deliveries()).length, 7)
    await limitPending(0)
  })
})

describe('endpoints that an API key created', () => {
  const addKeyed = async (expiresAt: string | null = null) => {
    const id = randomUUID()
    await query(
      `insert into api_key (id, account_id, name, digest, hint, scopes, expires_at)
       values ($1::uuid, $2, 'n', sha256($1::uuid::text::bytea), 'hint', '{jobs:read}', $3)`,
      [id, webhookDatabase.owner, expiresAt],
    )
    const made = {
      accountId: webhookDatabase.owner,
      organizationId: null,
      url: 'https://example.com/',
      host: 'example.com',
    }
    const { json } = await db.one(
      insertEndpoint({ ...made, events: ['job.done'], description: null, keyId: id, secret: SEALED_TEXT }),
    )
    return { key: id, endpoint: (JSON.parse(json) as { id: number }).id }
  }
  const isThere = async (id: number) =>
    (await query('select from webhook_endpoint where id = $1 and deleted_at is null', [id])).length === 1

  test('are deleted with the key, however it is deleted, but others stay', async () => {
    const [one, other, own] = [await addKeyed(), await addKeyed(), await endpoint(['job.done'])]
    const job = await ledger.add(webhookDatabase.owner)
    await db.run(callback(job, 'https://a.example.com/', one.key))
    await db.run(callback(job, 'https://b.example.com/', other.key))
    await query('delete from api_key where id = $1', [one.key])
    assert.deepEqual(await Promise.all([one.endpoint, other.endpoint, own].map(isThere)), [false, true, true])
    assert.deepEqual(await query('select url from job_callback'), [{ url: 'https://b.example.com/' }])
  })

  test('are deleted when the key expires', async () => {
    const [past, future] = [await addKeyed('2020-01-01'), await addKeyed('2999-01-01')]
    await db.any(listDueEndpoints())
    assert.deepEqual([await isThere(past.endpoint), await isThere(future.endpoint)], [false, true])
  })
})
