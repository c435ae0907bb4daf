import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCuttableConnection, startEdge } from '../edge/harness.ts'
import { assertRefused } from '../edge/orgs-help.ts'
import {
  buildCharge,
  buildDispute,
  buildIntent,
  buildSession,
  buildSubscription,
  buildWarning,
  createEvent,
  signEvent,
} from '../payment-events.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'
import { until } from '../until.ts'

const world = await getSharedPaymentsWorld()
const { api, env, open, query, send, stripe, postEvent, unconfigured, url } = world
const cuttableLink = await createCuttableConnection(url)
const cuttableEdge = await startEdge(cuttableLink.url, { env })
const ACKNOWLEDGEMENT = { received: 'true' }
const PATH = '/api/v1/payment/webhook'
// Maximum wait for an event's job; long enough for a busy machine.
const WAIT_MS = 2000

const readEvent = (id: string) => query('select * from payment_event where id = $1', [id])
const listPayments = async (path: string) => (await open.get(`/api/v1/payment${path}`)).json
const findTransaction = async (providerId: string) =>
  (await listPayments('/transactions?page_size=200')).transactions.find(
    (one: { provider_transaction_id: string }) => one.provider_transaction_id === providerId,
  )
let names = 0
const createName = (): string => `hook${++names}x`

describe('an event', () => {
  test('is applied before it is acknowledged, and its content is deleted', async () => {
    const name = createName()
    const given = createEvent('payment_intent.succeeded', buildIntent({ name, customer: null }))
    const from = performance.now()
    const answer = await postEvent(given)
    const heldMs = performance.now() - from
    assert.deepEqual([answer.status, answer.json], [200, ACKNOWLEDGEMENT])
    const [row] = await readEvent(given.id)
    if (row!.applied_at === null)
      assert.ok(heldMs >= WAIT_MS, `applied later than ${heldMs} ms after it came`)
    const applied = await until('the event is applied', async () => {
      const [later] = await readEvent(given.id)
      return later!.applied_at !== null && later
    })
    assert.deepEqual([applied.type, applied.data], [given.type, null])
    assert.equal((await findTransaction(`pi_${name}`)).status, 'succeeded')
  })

  test('creates an unknown customer without an account', async () => {
    const name = createName()
    await send(createEvent('payment_intent.succeeded', buildIntent({ name })))
    const rows = await query('select user_id from payment_customer where provider_customer_id = $1', [
      `cus_${name}`,
    ])
    assert.deepEqual(rows, [{ user_id: null }])
    await send(
      createEvent(
        'checkout.session.completed',
        buildSession({ name: createName(), customer: 'cus_setup' }, { mode: 'setup' }),
      ),
    )
    assert.equal(
      (await query(`select from payment_customer where provider_customer_id = 'cus_setup'`)).length,
      1,
    )
  })

  test('changes nothing when it is delivered again, concurrently or later', async () => {
    const name = createName()
    const given = createEvent('charge.refunded', buildCharge({ name }, 500))
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(given)))
    answers.push(await send(given))
    for (const answer of answers) assert.deepEqual([answer.status, answer.json], [200, ACKNOWLEDGEMENT])
    assert.equal((await readEvent(given.id)).length, 1)
    const jobs = await query(`select from job where payload ->> 'event_id' = $1`, [given.id])
    assert.equal(jobs.length, 1)
    assert.equal(
      (await query('select from payment_reference where provider_id = $1', [`pi_${name}`])).length,
      1,
    )
  })

  test('of another type is acknowledged and dropped', async () => {
    for (const type of [
      'customer.created',
      'invoice.created',
      'charge.succeeded',
      'x',
      'constructor',
      '__proto__',
    ]) {
      const given = createEvent(type, { id: 'x', customer: 'cus_of_no_interest' })
      const answer = await send(given)
      assert.deepEqual([answer.status, answer.json], [200, ACKNOWLEDGEMENT])
      assert.deepEqual(await readEvent(given.id), [])
    }
    assert.equal(
      (await query(`select from payment_customer where provider_customer_id = 'cus_of_no_interest'`)).length,
      0,
    )
  })

  for (const type of ['radar.early_fraud_warning.created', 'fraudscreen.early_fraud_warning.created'])
    test(`${type} creates an open dispute`, async () => {
      const name = createName()
      const id = await world.createPayment(name)
      assert.equal(
        (await send(createEvent(type, buildWarning({ name }, { id: `issfr_${name}` })))).status,
        200,
      )
      const [dispute] = (await listPayments('/disputes?status=open')).disputes
      assert.deepEqual(dispute, {
        id: dispute.id,
        transaction_id: id,
        provider_dispute_id: `issfr_${name}`,
        status: 'warning_issued',
        reason: 'made_with_stolen_card',
        amount: 2000,
        currency: 'usd',
        evidence_due_by: null,
        event_type: type,
        created_at: dispute.created_at,
        updated_at: dispute.updated_at,
      })
    })

  test("of a dispute maps the provider's status to ours", async () => {
    for (const [theirs, ours] of [
      ['warning_needs_response', 'warning_issued'],
      ['warning_under_review', 'warning_issued'],
      ['warning_closed', 'warning_closed'],
      ['needs_response', 'needs_response'],
      ['under_review', 'under_review'],
      ['won', 'won'],
      ['lost', 'lost'],
      ['charge_refunded', 'charge_refunded'],
    ] as const) {
      const name = createName()
      await send(createEvent('charge.dispute.created', buildDispute({ name }, theirs)))
      const [row] = await query(
        'select status, transaction_id from payment_dispute where provider_dispute_id = $1',
        [`du_${name}`],
      )
      assert.deepEqual(row, { status: ours, transaction_id: null })
    }
  })

  test("loses only characters that PostgreSQL can't store", async () => {
    const name = createName()
    const given = createEvent(
      'payment_intent.succeeded',
      buildIntent({ name }, { description: 'a\0b\ud800c' }),
    )
    assert.equal((await send(given)).status, 200)
    assert.equal((await findTransaction(`pi_${name}`)).description, 'ab\ufffdc')
  })

  test('is accepted without a credential in every authentication mode', async () => {
    const given = createEvent('customer.subscription.created', buildSubscription({ name: createName() }))
    for (const edge of [api, open]) {
      const body = JSON.stringify(given)
      const headers = {
        'stripe-signature': signEvent(body),
        origin: 'https://stripe.example',
        cookie: 'millrace_session=x',
      }
      assert.deepEqual((await edge.post(PATH, { body, headers })).json, ACKNOWLEDGEMENT)
    }
  })
})

describe('a failure of the service', () => {
  test('without a secret: returns 503 and names the setting', async () => {
    const body = JSON.stringify(createEvent('x', { id: 'x' }))
    const answer = await unconfigured.post(PATH, { body, headers: { 'stripe-signature': signEvent(body) } })
    assertRefused(answer, 503, 'Payment events are not configured. Set PROVIDER_WEBHOOK_SECRET.')
  })

  test('without the database: returns 503, and stores the redelivered event', async () => {
    const given = createEvent('payment_intent.succeeded', buildIntent({ name: createName() }))
    const body = JSON.stringify(given)
    const post = () => cuttableEdge.post(PATH, { body, headers: { 'stripe-signature': signEvent(body) } })
    await cuttableLink.cut()
    const answer = await post()
    assert.equal(answer.status, 503, answer.text)
    await cuttableLink.restore()
    await until('the database is reachable', async () => (await post()).status === 200)
    assert.equal((await readEvent(given.id)).length, 1)
  })

  test("an event that can't be applied is kept, and gets another job when it is redelivered", async () => {
    const name = createName()
    const given = createEvent('payment_intent.succeeded', buildIntent({ name }))
    await query(`create function unlucky() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
      create trigger unlucky before insert on payment_reference for each row when (new.provider_id = 'pi_${name}') execute function unlucky()`)
    // The job has not applied the event in time. The edge acknowledges the event because it is stored.
    assert.equal((await postEvent(given)).status, 200)
    await query(`update job set max_tries = 1 where payload ->> 'event_id' = $1`, [given.id])
    await until(
      'the job has failed',
      async () =>
        (await query(`select from job where payload ->> 'event_id' = $1 and status = 'failed'`, [given.id]))
          .length === 1,
      30_000,
    )
    assert.equal((await readEvent(given.id))[0]!.applied_at, null)
    await query('drop trigger unlucky on payment_reference')
    assert.deepEqual((await send(given)).json, ACKNOWLEDGEMENT)
    assert.notEqual((await readEvent(given.id))[0]!.applied_at, null)
    assert.equal(
      (await query('select from payment_reference where provider_id = $1', [`pi_${name}`])).length,
      1,
    )
  })

  test('accounts can neither see nor cancel jobs of events', async () => {
    const [who] = await world.people(1)
    const [job] = await query(`select id from job where name = 'payments.event' limit 1`)
    for (const token of [undefined, who!.token])
      for (const method of ['GET', 'DELETE'])
        assert.equal(
          (await api.call(method, `/api/v1/jobs/${job!.id}`, token === undefined ? {} : { token })).status,
          404,
        )
  })
})

test('links an invoice of the current API to its payment by a request to the provider', async () => {
  const name = createName()
  stripe.account.invoices.set(`in_${name}`, `pi_${name}`)
  const parent = { type: 'subscription_details', subscription_details: { subscription: `sub_${name}` } }
  const invoice = {
    id: `in_${name}`,
    object: 'invoice',
    amount_due: 1500,
    amount_paid: 1500,
    currency: 'usd',
    created: 1,
    customer: null,
    parent,
  }
  await send(createEvent('payment_intent.succeeded', buildIntent({ name, amount: 1500 })))
  await send(createEvent('invoice.paid', invoice))
  const rows = () =>
    query('select distinct transaction_id::int as id from payment_reference where provider_id in ($1, $2)', [
      `in_${name}`,
      `pi_${name}`,
    ])
  await until('the invoice and the payment are one transaction', async () => (await rows()).length === 1)
  const [{ id } = {}] = await rows()
  const { json } = await open.get(`/api/v1/payment/transactions/${id}`)
  assert.deepEqual(
    [json.type, json.amount, json.provider_transaction_id],
    ['subscription', 1500, `in_${name}`],
  )
})
