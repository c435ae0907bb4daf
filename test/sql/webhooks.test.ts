import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { z } from 'zod'
import { buildMessageSchema } from '../../edge/routes/webhooks/events.ts'
import { applySendEvents } from '../../sql/comms/sends.ts'
import { sql } from '../../sql/db.ts'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import { markOrganizationDeleted } from '../../sql/orgs/orgs.ts'
import {
  BACKOFF_FROM_FAILURES,
  listDueEndpoints,
  markEndpointDeleted,
  purgeEndpoints,
  recordDeliveryAttempt,
  updateEndpoint,
  type WebhookEvent,
} from '../../sql/webhooks/webhooks.ts'
import { ANSWER, createWebhookDatabase, RETRY_DELAYS_MS } from './webhooks-help.ts'

/** Changes of rows create deliveries with the right content, receivers and times. */

const webhookDatabase = await createWebhookDatabase()
const { db, query, ledger, insert, account, endpoint, delivery, deliveries, callback, ended, settle, take } =
  webhookDatabase
const readTypes = async (endpointId?: number) => (await deliveries(endpointId)).map(({ type }) => type)
/** Checks that the reference allows every stored event. */
const assertDescribed = async () => {
  for (const { type, body } of await deliveries())
    buildMessageSchema(type as WebhookEvent).parse(JSON.parse(body))
}
let [owner, count] = [0, 0]

beforeEach(async () => {
  await webhookDatabase.fresh()
  owner = webhookDatabase.owner
})

describe('the end of a job', () => {
  test('is delivered to the subscribed endpoints of its owner', async () => {
    const [all, failures] = [
      await endpoint(['job.done', 'job.failed', 'job.cancelled']),
      await endpoint(['job.failed']),
    ]
    await endpoint(['job.done', 'job.failed'], await account())
    const off = await endpoint(['job.done'])
    await db.one(updateEndpoint(off, { is_active: false }))
    const done = await ended()
    await ended('failed', { code: 'internal', detail: 'd' })
    const cancelled = await ledger.add(owner)
    await db.any(cancelJobs([cancelled]))
    assert.deepEqual(await readTypes(all), ['job.done', 'job.failed', 'job.cancelled'])
    assert.deepEqual(await readTypes(failures), ['job.failed'])
    assert.equal((await deliveries()).length, 4)
    const { type, data } = JSON.parse((await deliveries(all))[0]!.body)
    assert.deepEqual([type, data.job_id, data.status], ['job.done', done, 'done'])
    await assertDescribed()
  })

  test('is not delivered if the job will run again', async () => {
    const id = await endpoint(['job.done', 'job.failed'])
    const job = await ledger.add(owner)
    await ledger.claim(job)
    await ledger.finish(job, 'retry', { code: 'internal', detail: 'd' })
    assert.deepEqual(await readTypes(id), [])
  })

  test('is delivered without a long result', async () => {
    const id = await endpoint(['job.done'])
    await ended('done', { result: { text: 'x'.repeat(17_000) } })
    const { data } = JSON.parse((await deliveries(id))[0]!.body)
    assert.deepEqual([data.result, data.result_omitted], [null, true])
    await assertDescribed()
  })
})

describe('a callback', () => {
  test('is called once at the end, however the job ends, or immediately if it has ended', async () => {
    const job = await ledger.add(owner)
    for (const url of ['https://a.example.com/', 'https://b.example.com/', 'https://a.example.com/'])
      await db.run(callback(job, url))
    assert.equal((await deliveries()).length, 0)
    await ledger.claim(job)
    await ledger.finish(job, 'failed', { code: 'internal', detail: 'd' })
    const called = await deliveries()
    assert.deepEqual(called.map(({ url, type }) => [type, url]).sort(), [
      ['job.failed', 'https://a.example.com/'],
      ['job.failed', 'https://b.example.com/'],
    ])
    assert.deepEqual(await query('select from job_callback'), [])
    await db.run(callback(job, 'https://c.example.com/'))
    assert.equal((await deliveries()).at(-1)!.url, 'https://c.example.com/')
    assert.equal((await query('select from webhook_endpoint')).length, 1, 'one endpoint for all of them')
    await assertDescribed()
  })
})

describe('other events', () => {
  test('messages of callers, when their state changes', async () => {
    const id = await endpoint(['send.changed'])
    const send = async (purpose: string) => {
      const sendId = randomUUID()
      await query(
        `insert into comms_send (id, channel, purpose, owner_id, job_id, recipients, message, status, requested_at)
         values ($1, 'email', $2, $3, $1, '{a@example.com}', '{}', 'sending', now())`,
        [sendId, purpose, owner],
      )
      await query(`update comms_send set status = 'sent', settled_at = now() where id = $1`, [sendId])
      await query(`update comms_send set provider_status = 'x' where id = $1`, [sendId])
      const eventFields = {
        channel: 'email',
        providerId: sendId,
        sendId,
        errorCode: null,
        detail: null,
      } as const
      for (const status of ['delivered', 'bounced', 'delivered'] as const)
        await db.one(applySendEvents([{ ...eventFields, status, providerStatus: status }]))
    }
    await send('caller')
    await send('account')
    assert.deepEqual(
      (await query('select body from webhook_delivery where endpoint_id = $1 order by id', [id])).map(
        ({ body }) => JSON.parse(body as string).data.status,
      ),
      ['sent', 'delivered', 'bounced'],
    )
    assert.deepEqual(new Set(await readTypes(id)), new Set(['send.changed']))
    await assertDescribed()
  })

  test('payments, subscriptions and disputes of its customer', async () => {
    const id = await endpoint(['payment.changed'])
    const customer = await insert(`payment_customer (user_id, provider_customer_id) values ($1, $2)`, [
      owner,
      `cus_${owner}`,
    ])
    const facts = (more: object) => JSON.stringify({ created: ['1', 1_700_000_000], ...more })
    const money = { money: ['1', { amount: 500, currency: 'usd' }], invoice: ['1', `in_${owner}`] }
    const transaction = await insert(`payment_transaction (customer_id, facts) values ($1, $2)`, [
      customer,
      facts({ ...money, outcome: ['1', 'pending'] }),
    ])
    await query(`update payment_transaction set facts = $2 where id = $1`, [
      transaction,
      facts({ ...money, outcome: ['2', 'succeeded'] }),
    ])
    // Clients cannot see this change.
    await query(`update payment_transaction set reserved = 0 where id = $1`, [transaction])
    await insert(`payment_subscription (customer_id, provider_subscription_id, facts) values ($1, $2, $3)`, [
      customer,
      `sub_${owner}`,
      '{"status": ["1", "active"]}',
    ])
    await insert(`payment_dispute (transaction_id, provider_dispute_id, facts) values ($1, $2, $3)`, [
      transaction,
      `dp_${owner}`,
      facts({ state: ['1', { status: 'needs_response', event_type: 'e', at: 1_700_000_000 }] }),
    ])
    const told = (await deliveries(id)).map(({ body }) => JSON.parse(body).data)
    assert.deepEqual(
      told.map(({ kind, ...more }) => [kind, more[kind].status]),
      [
        ['transaction', 'pending'],
        ['transaction', 'succeeded'],
        ['subscription', 'active'],
        ['dispute', 'needs_response'],
      ],
    )
    await assertDescribed()
  })
})

const readState = async (id: number) =>
  (
    await query(
      `select is_active, failures, blocked_until > now() as rests, disabled_at is not null as off
    from webhook_endpoint where id = $1`,
      [id],
    )
  )[0]
describe('deliveries', () => {
  test('are due in order, taken once, and due again if their taker disappears', async () => {
    const id = await endpoint(['job.done'])
    const ids = [await delivery(id), await delivery(id), await delivery(id)]
    assert.deepEqual(await db.any(listDueEndpoints()), [{ id, host: 'example.com' }])
    assert.deepEqual(
      (await take(id, 2)).map((one) => one.id),
      ids.slice(0, 2),
    )
    assert.deepEqual(
      (await take(id)).map((one) => one.id),
      ids.slice(2),
    )
    assert.deepEqual(await take(id), [])
    assert.deepEqual(await db.any(listDueEndpoints()), [])
    await query(`update webhook_delivery set due_at = due_at - interval '45 seconds'`)
    assert.equal((await take(id)).length, 3)
  })

  test('wait longer after each failure, with 10 % jitter, and finally fail', async () => {
    const id = await endpoint(['job.done'])
    const one = await delivery(id)
    for (const wait of RETRY_DELAYS_MS) {
      // Both statements run in one transaction, so that `now()` is the same.
      const { ms } = await db.transaction(async (tx) => {
        assert.equal(
          (await tx.one(recordDeliveryAttempt(one, 'failed', ANSWER, RETRY_DELAYS_MS))).end,
          'pending',
        )
        return tx.one(sql.type(z.object({ ms: z.number() }))`
          select extract(epoch from due_at - now())::float8 * 1000 as ms from webhook_delivery`)
      })
      assert.ok(ms >= wait * 0.9 - 0.01 && ms <= wait * 1.1 + 0.01, `${ms} of ${wait} ms`)
    }
    assert.equal(await settle(one), 'failed')
    const [row] = await deliveries(id)
    assert.deepEqual([row!.status, row!.attempts, row!.due_at, row!.answers.length], ['failed', 4, null, 4])
    assert.equal(await settle(one), null, 'it has been settled')
  })

  test('fail after their deadline, even with few attempts', async () => {
    const id = await endpoint(['job.done'])
    const one = await delivery(id)
    await query(`update webhook_delivery set since = now() - interval '601 seconds' where id = $1`, [one])
    assert.equal(await settle(one), 'failed')
  })

  test('have their full time from the first attempt on, however long they waited', async () => {
    const id = await endpoint(['job.done'])
    const one = await delivery(id)
    await query(`update webhook_delivery set since = now() - interval '601 seconds' where id = $1`, [one])
    const failAgain = async () => {
      await query('update webhook_delivery set due_at = now() where id = $1', [one])
      assert.equal((await take(id)).length, 1)
      return settle(one)
    }
    assert.deepEqual([await failAgain(), await failAgain()], ['pending', 'pending'])
    await query(`update webhook_delivery set since = now() - interval '601 seconds' where id = $1`, [one])
    assert.equal(await failAgain(), 'failed')
  })

  test('of inactive accounts and endpoints wait', async () => {
    const id = await endpoint(['job.done'])
    await delivery(id)
    await query('update account set is_active = false where id = $1', [owner])
    assert.deepEqual([await db.any(listDueEndpoints()), await take(id)], [[], []])
    await query('update account set is_active = true where id = $1', [owner])
    await db.one(updateEndpoint(id, { is_active: false }))
    assert.deepEqual([await db.any(listDueEndpoints()), await take(id)], [[], []])
    await db.one(updateEndpoint(id, { is_active: true }))
    assert.equal((await take(id)).length, 1)
  })
})

describe('an endpoint', () => {
  test('backs off after several failures, is probed with one delivery, and recovers after one success', async () => {
    const id = await endpoint(['job.done'])
    const ids: number[] = []
    for (let n = 0; n < BACKOFF_FROM_FAILURES + 2; n++) ids.push(await delivery(id))
    for (const one of ids.slice(0, BACKOFF_FROM_FAILURES - 1)) await settle(one)
    assert.equal((await readState(id))!.rests, null)
    await settle(ids[BACKOFF_FROM_FAILURES - 1]!)
    assert.deepEqual(await readState(id), {
      is_active: true,
      failures: BACKOFF_FROM_FAILURES,
      rests: true,
      off: false,
    })
    assert.deepEqual([await db.any(listDueEndpoints()), await take(id)], [[], []])
    await query('update webhook_endpoint set blocked_until = now()')
    const probe = await take(id)
    assert.equal(probe.length, 1)
    assert.equal(await settle(probe[0]!.id, 'delivered'), 'delivered')
    assert.deepEqual(await readState(id), { is_active: true, failures: 0, rests: null, off: false })
    assert.equal((await take(id)).length, 1)
  })

  test('is disabled after a whole period without success', async () => {
    const id = await endpoint(['job.done'])
    const [one, two] = [await delivery(id), await delivery(id)]
    await settle(one)
    await query(`update webhook_endpoint set failing_since = now() - interval '601 seconds'`)
    assert.equal(await settle(two), 'disabled')
    assert.equal((await readState(id))!.off, true)
    assert.equal(await settle(one), 'pending', 'once')
  })

  test('is disabled immediately if it is gone, unless it receives callbacks', async () => {
    const id = await endpoint(['job.done'])
    assert.equal(await settle(await delivery(id), 'gone'), 'disabled')
    const callbacks = await insert(
      `webhook_endpoint (secret, account_id, events) values ('aaaaaaaa.AAAA', $1, '{}')`,
      [owner],
    )
    const called = await insert(
      `webhook_delivery (endpoint_id, type, url, host, body) values ($1, 't', 'https://example.com/', 'example.com', '{}')`,
      [callbacks],
    )
    assert.equal(await settle(called, 'gone'), 'failed')
    assert.deepEqual(await readState(callbacks), { is_active: true, failures: 0, rests: null, off: false })
  })

  test('of an organization ends with the membership of its account, and with the organization', async () => {
    const organization = async () => {
      const id = await insert(`organization (name, slug) values ('n', $1)`, [`o${++count}`])
      for (const member of [owner, await account()])
        await query(
          `insert into organization_member (organization_id, user_id, role) values ($1, $2, 'owner')`,
          [id, member],
        )
      return id
    }
    const [left, deleted] = [await organization(), await organization()]
    const ids = [
      await endpoint(['job.done'], owner, left),
      await endpoint(['job.done'], owner, deleted),
      await endpoint(['job.done']),
    ]
    await query('delete from organization_member where organization_id = $1 and user_id = $2', [left, owner])
    await db.one(markOrganizationDeleted(deleted))
    const states = await query(
      'select deleted_at is not null as gone from webhook_endpoint where id = any($1) order by id',
      [ids],
    )
    assert.deepEqual(
      states.map(({ gone }) => gone),
      [true, true, false],
    )
  })

  test('is purged in batches after its deletion', async () => {
    const [gone, kept] = [await endpoint(['job.done']), await endpoint(['job.done'])]
    for (let n = 0; n < 5; n++) await delivery(gone)
    await delivery(kept)
    await db.one(markEndpointDeleted(gone))
    assert.equal(await db.maybeOne(markEndpointDeleted(gone)), null)
    const counts: number[] = []
    for (let n = 0; n < 4; n++) counts.push((await db.one(purgeEndpoints(2))).count)
    assert.deepEqual(counts, [2, 2, 1, 1])
    assert.deepEqual(
      (await query('select id::int from webhook_endpoint')).map(({ id }) => id),
      [kept],
    )
    assert.equal((await deliveries()).length, 1)
  })
})
