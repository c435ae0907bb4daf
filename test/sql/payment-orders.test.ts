import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { applyChanges } from '../../sql/payments/changes.ts'
import { changesOf } from '../../tasks/payments/changes.ts'
import { objectOf } from '../../tasks/payments/reading.ts'
import { createChance } from '../chance.ts'
import { createTestDatabase } from '../database.ts'
import type { TestEvent } from '../payment-events.ts'
import { buildLifecycleEvents, LIFECYCLES, type Lifecycle } from '../payment-lifecycles.ts'
import { type ExpectedRows, liveRandomly } from '../payment-model.ts'
import { createRunOptions } from '../runs.ts'
import { readPaymentRows } from './payment-rows.ts'

/**
 * Payment events lead to the same rows in any order, with any repetitions and in parallel. A model of the provider
 * predicts the rows of random histories.
 */

const database = await createTestDatabase()
const CONCURRENCY = 8
// Rows that each lifecycle leaves when its events arrive in order.

const expectedRows = new Map<Lifecycle, unknown>()
let names = 0

const applyEvent = (event: TestEvent): Promise<unknown> => {
  const { object, previous_attributes: replaced } = event.data
  const change = { type: event.type, at: event.created, object, before: objectOf(replaced) }
  return database.db.transaction((tx) => tx.run(applyChanges(changesOf(change))))
}

/** Applies events, `atOnce` of them in parallel. */
async function applyAll(events: readonly TestEvent[], atOnce: number): Promise<void> {
  const queue = [...events]
  const lane = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await applyEvent(next)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

before(async () => {
  for (const life of LIFECYCLES) {
    const name = `told${++names}x`
    await applyAll(buildLifecycleEvents(life, name), 1)
    expectedRows.set(life, await readPaymentRows(database, name))
  }
})

/** Reads the rows of a random life, in the shape of the model. */
async function readModelRows(name: string): Promise<ExpectedRows> {
  const customer = `cus_${name}`
  const [row] = await database.query(
    `with customer as (select id from payment_customer where provider_customer_id = $1),
      own as (select t.* from payment_transaction t join customer c on c.id = t.customer_id where t.shown)
    select (select json_build_object('status', status, 'amount', amount, 'refunded', refunded) from own where charge_id is null) as payment,
      (select coalesce(json_agg(json_build_array(amount, status)), '[]') from own where charge_id is not null) as refunds,
      (select coalesce(sum(revenue), 0)::int from payment_sum where customer_id = (select id from customer)) as revenue,
      (select json_build_object('status', status, 'ends', cancel_at_period_end, 'cancelAt', extract(epoch from cancel_at)::bigint)
        from payment_subscription where provider_subscription_id = $2) as subscription,
      (select coalesce(json_agg(d.status order by d.status), '[]') from payment_dispute d join customer c on c.id = d.customer_id) as disputes`,
    [customer, `sub_${name}`],
  )
  const read = row as unknown as ExpectedRows
  return { ...read, refunds: [...read.refunds].sort((a, b) => (String(a) < String(b) ? -1 : 1)) }
}

test('random lives leave the rows that a model of the provider predicts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const chance = createChance(seed)
      const name = `told${++names}x`
      const { events, expected } = liveRandomly(name, chance)
      const delivered = [...events, ...events.filter(() => chance.isHit(0.3))]
        .map((event) => ({ event, place: chance.next() }))
        .sort((a, b) => a.place - b.place)
        .map(({ event }) => event)
      await applyAll(delivered, chance.pick([1, CONCURRENCY]))
      assert.deepEqual(await readModelRows(name), expected)
    }),
    { ...createRunOptions(200), endOnFailure: true, includeErrorInReport: true },
  )
})

/** Random numbers of copies of the events. The list repeats if there are more events than numbers. */
const copyCounts = fc.array(fc.record({ copies: fc.integer({ min: 1, max: 5 }), seed: fc.integer() }), {
  minLength: 9,
  maxLength: 9,
})

test('events leave the same rows in any order, up to five times each and eight in parallel', async () => {
  await fc.assert(
    fc.asyncProperty(copyCounts, fc.integer(), async (copies, seed) => {
      // The rows are found by a part of their ids, without an index.
      await database.query('truncate payment_customer cascade')
      const lives = LIFECYCLES.map((life) => ({ life, name: `told${++names}x` }))
      const { next } = createChance(seed)
      const events = lives
        .flatMap(({ life, name }) => buildLifecycleEvents(life, name))
        .flatMap((event, i) => Array.from({ length: copies[i % copies.length]!.copies }, () => event))
        .map((event) => ({ event, place: next() }))
        .sort((a, b) => a.place - b.place)
        .map(({ event }) => event)
      await applyAll(events, CONCURRENCY)
      for (const { life, name } of lives)
        assert.deepEqual(await readPaymentRows(database, name), expectedRows.get(life), life)
    }),
    // The interleaving differs from run to run, so shrinking would find another example.
    { ...createRunOptions(15), endOnFailure: true, includeErrorInReport: true },
  )
})

test('rows match the events', () => {
  const rowsOfKind = (life: Lifecycle, kind: string): Record<string, unknown>[] =>
    (expectedRows.get(life) as { kind: string; row: Record<string, unknown> }[])
      .filter((row) => row.kind === kind)
      .map(({ row }) => row)
  const state = (life: Lifecycle) =>
    rowsOfKind(life, 'transaction').map(({ type, status, amount }) => [type, status, amount])
  assert.deepEqual(state('payment'), [['charge', 'succeeded', 2000]])
  assert.deepEqual(state('declined'), [['charge', 'failed', 2000]])
  assert.deepEqual(state('recovered'), [['subscription', 'succeeded', 1500]])
  assert.deepEqual(state('subscription'), [['subscription', 'succeeded', 1500]])
  assert.deepEqual(state('refunded'), [
    ['charge', 'refunded', 2000],
    ['refund', 'succeeded', 300],
    ['refund', 'succeeded', 500],
    ['refund', 'succeeded', 1200],
  ])
  assert.deepEqual(state('disputed'), [['charge', 'partially_refunded', 2000]])
  assert.deepEqual(state('renewal'), [
    ['subscription', 'partially_refunded', 1500],
    ['refund', 'succeeded', 500],
  ])
  const subscriptions = LIFECYCLES.flatMap((life) =>
    rowsOfKind(life, 'subscription').map(({ status, cancel_at_period_end: ends }) => [life, status, ends]),
  )
  assert.deepEqual(subscriptions, [
    ['recovered', 'active', false],
    ['subscription', 'canceled', true],
    ['renewal', 'active', false],
  ])
  const disputes = LIFECYCLES.flatMap((life) =>
    rowsOfKind(life, 'dispute').map(({ status, event_type }) => [status, event_type]),
  )
  assert.deepEqual(disputes, [
    ['lost', 'charge.dispute.closed'],
    ['warning_issued', 'radar.early_fraud_warning.created'],
    ['warning_closed', 'charge.dispute.closed'],
  ])
})
