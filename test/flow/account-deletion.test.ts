import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noRows, sql } from '../../sql/db.ts'
import { buildSubscription } from '../payment-events.ts'
import { startPaymentsWorld } from '../payments-world.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'

/** Workers delete accounts that are due for deletion, after cancelling their subscriptions at the provider. */

const world = await startPaymentsWorld({ worker: false, env: { LEASE_SECONDS: '1' } })
const { api, db, env, people, query, stripe, url } = world
const [admin] = await people(1, 'admin')
const startWorker = () =>
  startProcess('worker', url, {
    ...env,
    WORKER_QUEUES: 'accounts,system',
    // The scheduler retries a failed deletion after an hour, so failed jobs must be kept longer than that.
    WORKER_KEEP_RESULT_SECONDS: '86400',
  })
// The tests run this schedule themselves, so its own runs would interfere.
await api.post('/api/v1/schedules/prune/pause', { token: admin!.token })
const firstWorker = await startWorker()
let names = 0
// Before a cancellation, the worker lists open checkouts and active subscriptions. No fault hits these two requests.
const NO_LIST_FAULTS = [null, null]

/**
 * Adds an account that is due for deletion and has an active subscription. If `at` is null, the provider does not have
 * the subscription.
 */
async function addLeavingAccount(at: object | null = {}) {
  const [who] = await people(1)
  const name = `leaver${++names}x`
  await world.link(who!, name)
  const object = buildSubscription({ name })
  if (at !== null) stripe.account.subscriptions.set(`sub_${name}`, { ...object, ...at } as never)
  await query(
    `insert into payment_subscription (customer_id, provider_subscription_id, facts)
     select id, $1, '{"status": ["0", "active"]}' from payment_customer where user_id = $2`,
    [`sub_${name}`, who!.id],
  )
  await query('update account set deletion_at = now() where id = $1', [who!.id])
  const readAccount = async () => (await query('select deleted_at from account where id = $1', [who!.id]))[0]
  return {
    ...who!,
    subscription: () => stripe.account.subscriptions.get(`sub_${name}`),
    asked: () => stripe.asked.filter(({ path }) => path === `/v1/subscriptions/sub_${name}`),
    isThere: async () => (await readAccount())?.deleted_at === null,
    isGone: async () => (await readAccount()) === undefined,
    jobs: () =>
      query(
        `select status, error_code from job where name = 'accounts.delete' and payload ->> 'account_id' = $1 order by ordinal`,
        [String(who!.id)],
      ),
    events: () =>
      query(`select kind from audit_event where kind = 'account.deleted' and account_id = $1`, [who!.id]),
  }
}

/** Runs the schedule that starts due deletions, and waits for it. */
async function startDueDeletions(): Promise<void> {
  const answer = await api.post('/api/v1/schedules/prune/run', { token: admin!.token })
  assert.ok(answer.status < 300, answer.text)
  const { job_id } = answer.json
  const ended = () => query(`select from job where id = $1 and status = 'done'`, [job_id])
  await until('the prune job is done', async () => (await ended()).length === 1)
}

/** Backdates failed jobs by an hour. */
const backdateFailures = () =>
  query(`update job set finished_at = finished_at - interval '1 hour' where status = 'failed'`)

test('deletes an account with all its data after its subscription is cancelled at the provider', async () => {
  const one = await addLeavingAccount()
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
  assert.equal(one.subscription()!.cancel_at_period_end, true)
  assert.equal(one.asked().length, 1)
  assert.deepEqual(await one.events(), [{ kind: 'account.deleted' }])
  const [customer] = await query(`select c.user_id, s.cancel_at_period_end from payment_customer c
    join payment_subscription s on s.customer_id = c.id order by c.id desc limit 1`)
  assert.deepEqual(customer, { user_id: null, cancel_at_period_end: true })
  const jobs = await query(`select payload from job where name = 'payments.forget'`)
  assert.deepEqual(
    jobs.map(({ payload }) => (payload as { account_id: number }).account_id),
    [one.id],
  )
})

test('keeps an account usable while the provider fails, and retries at most hourly', async () => {
  const one = await addLeavingAccount()
  stripe.faults.push('revoked')
  await startDueDeletions()
  await until('the job has failed', async () => (await one.jobs())[0]?.status === 'failed')
  assert.deepEqual(await one.jobs(), [{ status: 'failed', error_code: 'payment.key' }])
  assert.equal(await one.isThere(), true)
  assert.equal((await api.get('/api/v1/auth/me', { token: one.token })).status, 200)
  await startDueDeletions()
  assert.equal((await one.jobs()).length, 1, 'which is soon enough')
  await backdateFailures()
  stripe.faults.push('broken', 'cut')
  await startDueDeletions()
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
  assert.deepEqual(
    (await one.jobs()).map(({ status }) => status),
    ['failed', 'done'],
    'the second look has joined the job of the first',
  )
  assert.equal(one.subscription()!.cancel_at_period_end, true)
  assert.equal((await one.events()).length, 1)
})

test('deletes an account whose subscription belongs to a schedule, after releasing it', async () => {
  const one = await addLeavingAccount({ schedule: 'sub_sched_leaver' })
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
  const { schedule, cancel_at_period_end } = one.subscription()!
  assert.deepEqual([schedule, cancel_at_period_end], [null, true])
})

test('expires open checkouts and cancels subscriptions that only the provider has', async () => {
  const [who] = await people(1)
  await world.link(who!, 'late1x')
  const open = { customer: 'cus_late1x', status: 'open' }
  stripe.account.sessions.push({ id: 'cs_late1x', ...open }, { id: 'cs_paid1x', ...open, status: 'complete' })
  stripe.account.subscriptions.set('sub_late1x', buildSubscription({ name: 'late1x' }) as never)
  const answer = await api.call('DELETE', `/api/v1/auth/users/${who!.id}`, { token: admin!.token })
  assert.equal(answer.status, 204)
  const there = () => query('select from account where id = $1', [who!.id])
  await until('the account is deleted', async () => (await there()).length === 0)
  const sessions = stripe.account.sessions.filter(({ customer }) => customer === open.customer)
  assert.deepEqual(
    sessions.map(({ status }) => status),
    ['expired', 'complete'],
  )
  assert.equal(stripe.account.subscriptions.get('sub_late1x')!.cancel_at_period_end, true)
})

test('deletes an account whose subscription the provider has ended or does not have', async () => {
  const [ended, unknown] = [await addLeavingAccount({ status: 'canceled' }), await addLeavingAccount(null)]
  await startDueDeletions()
  for (const one of [ended, unknown]) await until('the account is deleted', one.isGone)
})

test('releases a schedule before it cancels the subscription, and cancels schedules that have not started', async () => {
  const one = await addLeavingAccount()
  const { id, customer } = one.subscription()!
  const schedule = `sub_sched_${one.id}`
  stripe.account.subscriptions.set(id, { ...one.subscription()!, schedule })
  const managed = { id: schedule, customer, status: 'active', subscription: id }
  const future = { id: `${schedule}_later`, customer, status: 'not_started' }
  for (const row of [managed, future]) stripe.account.schedules.set(row.id, row)
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
  const { status, cancel_at_period_end } = one.subscription()!
  assert.deepEqual([status, cancel_at_period_end], ['active', true])
  const schedules = [schedule, future.id].map((name) => stripe.account.schedules.get(name)!.status)
  assert.deepEqual(schedules, ['released', 'canceled'])
  assert.deepEqual(await one.events(), [{ kind: 'account.deleted' }])
})

test('cancels an incomplete subscription immediately', async () => {
  const one = await addLeavingAccount({ status: 'incomplete' })
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
  assert.equal(one.subscription()!.status, 'canceled')
})

test('after a week of refusals deletes an account all the same, with an audit event and a mail to admins', async () => {
  const one = await addLeavingAccount()
  stripe.faults.push(...NO_LIST_FAULTS, 'invalid')
  await query(`update account set deletion_at = now() - interval '6 days' where id = $1`, [one.id])
  await startDueDeletions()
  await until('the job has failed', async () => (await one.jobs())[0]?.status === 'failed')
  assert.equal(await one.isThere(), true)
  await query(`update account set deletion_at = now() - interval '8 days' where id = $1`, [one.id])
  await backdateFailures()
  stripe.faults.push(...NO_LIST_FAULTS, 'invalid')
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
  const subscription = one.subscription()!.id
  const events = await query(
    `select actor_id, data - 'detail' as data from audit_event where kind = 'account.deletion_forced' and account_id = $1`,
    [one.id],
  )
  const data = { subscriptions: [subscription], code: 'payment.rejected' }
  assert.deepEqual(events, [{ actor_id: null, data }])
  assert.deepEqual(await one.events(), [{ kind: 'account.deleted' }])
  const mails = await query(
    `select payload from job where name = 'accounts.forced-deletion-mail' and payload ->> 'account_id' = $1`,
    [String(one.id)],
  )
  const payload = { admin_id: admin!.id, account_id: one.id, subscriptions: [subscription] }
  assert.deepEqual(mails, [{ payload }])
})

test('keeps an account until the provider cancels its subscription', async () => {
  const one = await addLeavingAccount()
  stripe.faults.push(...NO_LIST_FAULTS, 'invalid')
  await startDueDeletions()
  await until('the job has failed', async () => (await one.jobs())[0]?.status === 'failed')
  assert.deepEqual(await one.jobs(), [{ status: 'failed', error_code: 'payment.rejected' }])
  assert.equal(await one.isThere(), true)
  await backdateFailures()
  await startDueDeletions()
  await until('the account is deleted', one.isGone)
})

test('does not delete accounts before they are due', async () => {
  const one = await addLeavingAccount()
  await query(`update account set deletion_at = now() + interval '1 hour' where id = $1`, [one.id])
  await startDueDeletions()
  assert.deepEqual(await one.jobs(), [])
  assert.equal(one.asked().length, 0)
})

test('keeps an account whose deletion is revoked during the request to the provider', async () => {
  const one = await addLeavingAccount()
  await db.transaction(async (tx) => {
    // The lock delays storing the provider's answer.
    await tx.run(sql.type(noRows)`lock table payment_subscription in exclusive mode`)
    await startDueDeletions()
    await until('the provider has received the request', () => one.asked().length === 1)
    await query('update account set deletion_at = null where id = $1', [one.id])
  })
  await until('the job has ended', async () => (await one.jobs())[0]?.status === 'done')
  assert.equal(await one.isThere(), true)
  assert.deepEqual(await one.events(), [])
})

test("an admin's deletion of an account cancels its subscription as well", async () => {
  const one = await addLeavingAccount()
  await query('update account set deletion_at = null where id = $1', [one.id])
  const answer = await api.call('DELETE', `/api/v1/auth/users/${one.id}`, { token: admin!.token })
  assert.equal(answer.status, 204)
  assert.equal((await api.get('/api/v1/auth/me', { token: one.token })).status, 401)
  await until('the account is deleted', one.isGone)
  assert.equal(one.subscription()!.cancel_at_period_end, true)
})

test('after a worker is killed during a request to the provider, the next one deletes the account once', async () => {
  const one = await addLeavingAccount()
  stripe.faults.push(...NO_LIST_FAULTS, 'hang-after')
  await startDueDeletions()
  await until('the provider has received the request', () => one.asked().length === 1)
  await firstWorker.kill()
  assert.equal(await one.isThere(), true)
  await startWorker()
  await until('the account is deleted', one.isGone, 60_000)
  assert.equal((await one.events()).length, 1)
  assert.equal(one.subscription()!.cancel_at_period_end, true)
})
