import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reconcilePayments } from '../../tasks/payments/reconcile.task.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { enqueue } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import { buildCharge, buildIntent, createEvent } from '../payment-events.ts'
import { startPaymentsWorld } from '../payments-world.ts'
import { runScript, type ScriptResult } from '../service.ts'
import { until } from '../until.ts'

const world = await startPaymentsWorld()
const { call, db, env, link, createPayment, people, query, send, stripe, transaction, url } = world
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** Runs the reconciliation task as its schedule does, and returns the result. */
async function runTask(): Promise<Record<'missed' | 'left' | 'settled', number>> {
  const { jobId } = await db.transaction((tx) =>
    enqueue(tx, reconcilePayments, {}, { ownerId: null, settings: createJobSettings(1) }),
  )
  const { status, result, error_detail } = await until('the reconciliation has ended', async () => {
    const [job] = await query('select * from job where id = $1 and finished_at is not null', [jobId])
    return job
  })
  assert.equal(status, 'done', String(error_detail))
  return result as Awaited<ReturnType<typeof runTask>>
}
const waitUntilApplied = (id: string): Promise<unknown> =>
  until(
    `${id} is applied`,
    async () =>
      (await query('select from payment_event where id = $1 and applied_at is not null', [id])).length === 1,
  )

test("reads missed events from the provider's list once, starting where the last run ended", async () => {
  const missed = Array.from({ length: 130 }, (_, n) =>
    createEvent('payment_intent.succeeded', buildIntent({ name: `missed${n}x` }), {
      created: nowSeconds() - 3600 + n,
    }),
  )
  const came = createEvent('payment_intent.succeeded', buildIntent({ name: 'came' }), {
    created: nowSeconds() - 1800,
  })
  await send(came)
  stripe.account.events.push(
    ...([...missed, came] as never[]),
    createEvent('customer.created', { id: 'x' }) as never,
  )
  assert.deepEqual(await runTask(), { missed: 130, left: 0, settled: 0 })
  for (const { id } of missed) await waitUntilApplied(id)
  assert.equal((await query(`select from payment_transaction where shown`)).length, 131)
  assert.deepEqual(await runTask(), { missed: 0, left: 0, settled: 0 })
  const since = Number(stripe.eventsAsked.at(-1)!.fields['created[gte]'])
  assert.ok(since > nowSeconds() - 700, 'it goes on from where it was')
  assert.ok(!Object.values(stripe.eventsAsked.at(-1)!.fields).some((type) => type.startsWith('fraudscreen.')))
})

test('reads a list again if the previous run was interrupted', async () => {
  const late = createEvent(
    'charge.refunded',
    buildCharge({ name: 'missed0x' }, 100, { refunds: { data: [] } }),
    {
      created: nowSeconds(),
    },
  )
  stripe.account.events.push(late as never)
  stripe.eventFaults.push('revoked')
  await assert.rejects(runTask(), /PROVIDER_SECRET_KEY/)
  assert.equal((await runTask()).missed, 1)
  await waitUntilApplied(late.id)
})

test('starts from the beginning if the stored position is in the future', async () => {
  await query(`update payment_reconciliation set read_until = now() + interval '20 days'`)
  const late = createEvent('payment_intent.succeeded', buildIntent({ name: 'ahead1x' }), {
    created: nowSeconds() - 7200,
  })
  stripe.account.events.push(late as never)
  assert.equal((await runTask()).missed, 1)
  await waitUntilApplied(late.id)
  assert.equal((await runTask()).missed, 0)
  const since = Number(stripe.eventsAsked.at(-1)!.fields['created[gte]'])
  assert.ok(since > nowSeconds() - 700 && since <= nowSeconds(), 'it goes on from where it was')
})

test('a stored event that was never applied gets another job', async () => {
  const given = createEvent('payment_intent.succeeded', buildIntent({ name: 'left' }))
  await query(
    `insert into payment_event (id, type, created_at, data, job_id) values ($1, $2, now(), $3, gen_random_uuid())`,
    [given.id, given.type, JSON.stringify({ object: given.data.object, previous_attributes: {} })],
  )
  assert.equal((await runTask()).left, 1)
  await waitUntilApplied(given.id)
})

/** Adds a refund whose outcome is unknown, because the provider failed. */
async function addUnsettledRefund(
  name: string,
): Promise<{ id: number; readSums: () => Promise<unknown>; taken: boolean }> {
  const [who] = await people(1)
  await link(who!, name)
  const id = await createPayment(name)
  await world.limitRefundTries(id, 3)
  const taken = name.startsWith('taken')
  stripe.faults.push(
    ...(taken ? (['broken', 'broken', 'cut', 'broken'] as const) : (['broken', 'broken', 'broken'] as const)),
  )
  assert.equal((await call(who!, 'POST', `/refund/${id}`, { amount: 700 })).status, 502)
  const readSums = () =>
    query('select refunds::int, reserved::int, status from payment_transaction where id = $1', [id])
  assert.deepEqual(await readSums(), [{ refunds: 0, reserved: 700, status: 'succeeded' }])
  return { id, readSums, taken }
}

test('finds a refund at the provider by the job that requested it', async () => {
  const { id, readSums } = await addUnsettledRefund('taken1x')
  assert.equal((await runTask()).settled, 0, 'not while the request may still be under way')
  await query(`update job set finished_at = finished_at - interval '1 h' where name = 'payments.refund'`)
  assert.equal((await runTask()).settled, 1)
  assert.deepEqual(await readSums(), [{ refunds: 700, reserved: 0, status: 'partially_refunded' }])
  assert.equal(
    (await query('select from payment_transaction where charge_id = $1 and shown', [id])).length,
    1,
  )
  assert.equal((await runTask()).settled, 0)
})

test('a refund that cannot be looked up blocks neither events nor other refunds', async () => {
  const stuck = await addUnsettledRefund('stuck1x')
  const { readSums } = await addUnsettledRefund('taken2x')
  await query(`update job set finished_at = finished_at - interval '1 h' where name = 'payments.refund'`)
  const missed = createEvent('payment_intent.succeeded', buildIntent({ name: 'missed200x' }), {
    created: nowSeconds(),
  })
  stripe.account.events.push(missed as never)
  stripe.faults.push('invalid')
  const { settled, missed: found } = await runTask()
  assert.deepEqual([settled, found], [1, 1])
  await waitUntilApplied(missed.id)
  assert.deepEqual(await readSums(), [{ refunds: 700, reserved: 0, status: 'partially_refunded' }])
  assert.deepEqual(await stuck.readSums(), [{ refunds: 0, reserved: 700, status: 'succeeded' }])
  assert.equal((await runTask()).settled, 1, 'it is looked up again')
  assert.deepEqual(await stuck.readSums(), [{ refunds: 0, reserved: 0, status: 'succeeded' }])
})

test('releases the reserved amount of a refund that the provider does not have', async () => {
  const { readSums } = await addUnsettledRefund('untaken1x')
  await query(`delete from job where name = 'payments.refund'`)
  assert.equal((await runTask()).settled, 1)
  assert.deepEqual(await readSums(), [{ refunds: 0, reserved: 0, status: 'succeeded' }])
  await runTask()
  assert.deepEqual(
    await query(`select from payment_transaction where charge_id is not null and not shown`),
    [],
  )
})

test('looks up pending refunds until their state is final', async () => {
  const [who] = await people(1)
  await link(who!, 'slow1x')
  const id = await createPayment('slow1x')
  stripe.account.refundStatus = 'pending'
  const { json: refund } = await call(who!, 'POST', `/refund/${id}`, {})
  stripe.account.refundStatus = 'succeeded'
  assert.deepEqual(
    [refund.status, (await transaction(who!, id)).status, (await runTask()).settled],
    ['pending', 'refunded', 0],
  )
  const atProvider = stripe.account.refunds.find((one) => one.id === refund.provider_transaction_id)!
  atProvider.status = 'failed'
  assert.equal((await runTask()).settled, 1)
  assert.equal((await transaction(who!, refund.id)).status, 'failed')
  assert.equal((await transaction(who!, id)).status, 'succeeded')
  assert.equal((await runTask()).settled, 0)
})

test('links paid invoices to their payments if the look-up after their event failed', async () => {
  const [who] = await people(1)
  await link(who!, 'split1x')
  const customer = 'cus_split1x'
  const parts = ['split1xa', 'split1xb']
  stripe.account.invoices.set('in_split1x', { pi_split1xa: 2500, pi_split1xb: 2500 })
  for (const name of parts)
    await send(createEvent('payment_intent.succeeded', buildIntent({ name, customer, amount: 2500 })))
  stripe.faults.push('forbidden')
  const invoice = {
    id: 'in_split1x',
    object: 'invoice',
    amount_due: 5000,
    amount_paid: 5000,
    currency: 'usd',
  }
  await send(createEvent('invoice.paid', { ...invoice, customer, created: 1_700_000_000, parent: null }))
  const readStatus = async () => (await call(who!, 'GET', '/status')).json
  const hasFailed = () => query(`select from job where name = 'payments.look-up' and status = 'failed'`)
  await until('the look-up has failed', async () => (await hasFailed()).length === 1)
  assert.deepEqual((await readStatus()).unlinked_invoices, 1)
  await runTask()
  const { unlinked_invoices, total_revenue_cents, total_transactions } = await readStatus()
  assert.deepEqual([unlinked_invoices, total_revenue_cents, total_transactions], [0, 5000, 1])
})

/** Runs `npm run reconcile`. */
const runReconcile = (given: Readonly<Record<string, string>> = {}): Promise<ScriptResult> =>
  runScript('workers/reconcile.ts', { ...env, DATABASE_URL: url, NODE_ENV: 'test', ...given })

test('npm run reconcile ingests missed events, even next to running workers', async () => {
  const given = createEvent('payment_intent.succeeded', buildIntent({ name: 'byhand' }), {
    created: nowSeconds(),
  })
  stripe.account.events.push(given as never)
  const { status, stdout } = await runReconcile()
  assert.deepEqual([status, stdout], [0, 'Events ingested: 1; ingested again: 0; refunds looked up: 0\n'])
  await waitUntilApplied(given.id)
  const [who] = await people(1)
  await link(who!, 'byhand2')
  assert.equal((await transaction(who!, await createPayment('byhand2'))).status, 'succeeded')
})

test('npm run reconcile reports a missing database URL', async () => {
  assert.deepEqual(await runReconcile({ DATABASE_URL: '' }), {
    status: 2,
    stdout: '',
    stderr: 'DATABASE_URL: required\n',
  })
})

test('npm run reconcile reports failures and exits with status 1', async () => {
  const { status, stdout, stderr } = await runReconcile({
    DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
  })
  assert.deepEqual([status, stdout], [1, ''])
  assert.match(stderr, /^\S.*\n$/)
})

test('the schedule runs every five minutes', () => {
  assert.ok(
    scheduleEntries.some(({ match, task }) => match === '*/5 * * * *' && task.name === 'payments.reconcile'),
  )
})
