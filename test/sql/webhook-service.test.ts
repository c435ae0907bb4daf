import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { storePendingQuota } from '../../sql/quotas/quotas.ts'
import { removeAccount } from '../../sql/retention/purge.ts'
import { findDisabledEndpoint, listDueEndpoints, listEndpointOwners } from '../../sql/webhooks/webhooks.ts'
import { DEFAULT_QUOTAS } from '../job-settings.ts'
import { createWebhookDatabase } from './webhooks-help.ts'

/** Endpoints of the service receive the events of all accounts. */

const webhookDatabase = await createWebhookDatabase()
const { db, query, ledger, insert, account, endpoint, delivery, deliveries, ended, settle, take } =
  webhookDatabase
beforeEach(() => webhookDatabase.fresh())

const readMessages = async (id: number) => (await deliveries(id)).map(({ body }) => JSON.parse(body))
const endJobOf = async (ownerId: number | null): Promise<string> => {
  const id = await ledger.add(ownerId as never)
  await ledger.claim(id)
  await ledger.finish(id, 'done')
  return id
}

describe('an endpoint of the service', () => {
  test('receives each event of every account once, with the account', async () => {
    const other = await account()
    const service = await endpoint(['job.done'], null)
    const own = await endpoint(['job.done'])
    const jobs = [await ended(), await endJobOf(other)]
    await ended('failed', { code: 'internal', detail: 'd' })
    assert.deepEqual(
      (await readMessages(service)).map(({ type, account_id, data }) => [type, account_id, data.job_id]),
      [
        ['job.done', webhookDatabase.owner, jobs[0]],
        ['job.done', other, jobs[1]],
      ],
    )
    assert.deepEqual(
      (await readMessages(own)).map(({ account_id, data }) => [account_id, data.job_id]),
      [[webhookDatabase.owner, jobs[0]]],
    )
  })

  test('receives no events of jobs without an account, such as its own deliveries', async () => {
    const service = await endpoint(['job.done'], null)
    await endJobOf(null)
    assert.deepEqual(await readMessages(service), [])
  })

  test('receives payments and messages of accounts without endpoints', async () => {
    const service = await endpoint(['payment.changed', 'send.changed'], null)
    const customer = await insert('payment_customer (user_id, provider_customer_id) values ($1, $2)', [
      webhookDatabase.owner,
      `cus_${webhookDatabase.owner}`,
    ])
    const guest = await insert('payment_customer (user_id, provider_customer_id) values (null, $1)', [
      `cus_guest${webhookDatabase.owner}`,
    ])
    for (const id of [customer, guest])
      await query(
        `insert into payment_subscription (customer_id, provider_subscription_id, facts)
         values ($1, $2, '{"plan_name":["1","Standard"],"status":["1","active"]}')`,
        [id, `sub_${id}`],
      )
    await query(
      `with s as (insert into comms_send (id, channel, purpose, owner_id, job_id, recipients, message, status, requested_at)
         values (gen_random_uuid(), 'email', 'caller', $1, gen_random_uuid(), '{a@example.com}', '{}', 'sending', now()) returning id)
       select from s`,
      [webhookDatabase.owner],
    )
    await query(`update comms_send set status = 'sent', settled_at = now()`)
    assert.deepEqual(
      (await readMessages(service)).map(({ type, account_id }) => [type, account_id]),
      [
        ['payment.changed', webhookDatabase.owner],
        ['send.changed', webhookDatabase.owner],
      ],
    )
  })

  test('receives nothing while it is inactive', async () => {
    const service = await endpoint(['job.done'], null)
    await query('update webhook_endpoint set is_active = false')
    await ended()
    assert.deepEqual(await readMessages(service), [])
  })

  test('is due and claimed like others, with a rate limit of its own', async () => {
    const [service, own] = [await endpoint(['job.done'], null), await endpoint(['job.done'])]
    for (const id of [service, service, service, own]) await delivery(id)
    const due = await db.any(listDueEndpoints())
    assert.deepEqual(
      due.map(({ id }) => id),
      [service, own],
    )
    const rates = { verified: null, unverified: { max: 2, seconds: 60 } }
    assert.equal((await take(service, 8, rates)).length, 2)
    assert.equal((await take(service, 8, rates)).length, 0)
    assert.equal((await take(own, 8, rates)).length, 1)
  })

  test('has a quota of pending deliveries of its own', async () => {
    await db.run(storePendingQuota({ ...DEFAULT_QUOTAS, pending_deliveries: 2 }))
    const [service, own] = [await endpoint(['job.done'], null), await endpoint(['job.done'])]
    for (let n = 0; n < 3; n++) await ended()
    assert.deepEqual([(await deliveries(service)).length, (await deliveries(own)).length], [2, 2])
    await db.run(storePendingQuota({ ...DEFAULT_QUOTAS, pending_deliveries: 0 }))
  })

  test('survives the accounts, and all active admins learn that it was disabled', async () => {
    const service = await endpoint(['job.done'], null)
    const [one, two, gone] = [await account(), await account(), await account()]
    await query(`update account set role = 'admin' where id = any($1)`, [[one, two, gone]])
    await db.one(deleteAccount(gone))
    await db.run(removeAccount(gone))
    const owners = (await db.any(listEndpointOwners(service))).map(({ id }) => id).sort((a, b) => a - b)
    assert.deepEqual(owners, [one, two])
    assert.equal(await settle(await delivery(service), 'gone'), 'disabled')
    assert.notEqual(await db.maybeOne(findDisabledEndpoint(service, one)), null)
    for (const stranger of [webhookDatabase.owner, gone])
      assert.equal(await db.maybeOne(findDisabledEndpoint(service, stranger)), null)
    await query(`update account set role = 'user' where id = $1`, [one])
    assert.equal(await db.maybeOne(findDisabledEndpoint(service, one)), null)
  })
})
