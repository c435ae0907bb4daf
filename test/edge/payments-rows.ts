import assert from 'node:assert/strict'
import { applyChanges } from '../../sql/payments/changes.ts'
import { changesOf } from '../../tasks/payments/changes.ts'
import {
  buildCharge,
  buildDispute,
  buildIntent,
  buildInvoice,
  buildRefund,
  buildSubscription,
  buildWarning,
  createEvent,
  type TestEvent,
} from '../payment-events.ts'
import { startPaymentsWorld } from '../payments-world.ts'
import { shareByFiles } from '../services.ts'
import { startEdge } from './harness.ts'
import type { Person } from './orgs-help.ts'

export const DAY = 86_400
export const NOW = Math.floor(Date.now() / 1000)

/** Creates the event of a successful payment. */
export const createPaidEvent = (name: string, customer: string, more: object = {}): TestEvent =>
  createEvent('payment_intent.succeeded', buildIntent({ name, customer: `cus_${customer}`, ...more }))

/** Creates payments of two people and a guest in a new database, with helpers that read them. */
export async function createPayments() {
  const world = await startPaymentsWorld({ worker: false })
  const { call, db, link, people, url, env } = world
  const open = await startEdge(url, { env: { ...env, AUTH_LEVEL: 'none' } })
  const [ann, bob, eve] = (await people(3)) as [Person, Person, Person]
  const admin = (await people(1, 'admin'))[0]!
  /** Applies events to the database directly, bypassing the webhook. */
  const applyEvents = async (...events: TestEvent[]): Promise<void> => {
    for (const { type, created: at, data } of events)
      await db.run(applyChanges(changesOf({ type, at, object: data.object, before: {} })))
  }
  /** Sends a GET request as an account and returns the JSON. */
  const get = async (who: Person | null, path: string) => {
    const answer = await call(who, 'GET', path)
    assert.equal(answer.status, 200, answer.text)
    return answer.json
  }
  /** Sends a GET request to an edge with `AUTH_LEVEL=none` and returns the JSON. */
  const everything = async (path: string) => (await open.get(`/api/v1/payment${path}`)).json
  await link(ann, 'ann')
  await link(bob, 'bob')
  await applyEvents(...HISTORY)
  return { ...world, ann, bob, eve, admin, tell: applyEvents, get, everything }
}

/** Shared by the files of this process that do not change the payment totals. */
export const getSharedPayments = shareByFiles(createPayments)

// Ann has a payment in each state, a subscription, and disputes. Bob has one of each. A guest's payment has no owner.
const HISTORY: readonly TestEvent[] = [
  createPaidEvent('a1', 'ann', { at: NOW - 3 * DAY, amount: 1000 }),
  createPaidEvent('a2', 'ann', { at: NOW - 2 * DAY, amount: 2000 }),
  createEvent(
    'charge.refunded',
    buildCharge({ name: 'a2', customer: 'cus_ann', at: NOW - 2 * DAY, amount: 2000 }, 500, {
      refunds: { data: [buildRefund('a2', 1, 500, NOW - DAY + 1)] },
    }),
  ),
  createPaidEvent('a3', 'ann', { at: NOW - DAY, amount: 3000 }),
  createEvent(
    'charge.refunded',
    buildCharge({ name: 'a3', customer: 'cus_ann', at: NOW - DAY, amount: 3000 }, 3000),
  ),
  createEvent(
    'payment_intent.payment_failed',
    buildIntent({ name: 'a4', customer: 'cus_ann', at: NOW - 40 * DAY }),
  ),
  createEvent(
    'payment_intent.payment_failed',
    buildIntent({ name: 'a5', customer: 'cus_ann', at: NOW - 41 * DAY }, { status: 'canceled' }),
  ),
  createEvent('checkout.session.completed', {
    id: 'cs_a6',
    mode: 'payment',
    payment_status: 'unpaid',
    amount_total: 600,
    currency: 'usd',
    customer: 'cus_ann',
    payment_intent: 'pi_a6',
    created: NOW - 42 * DAY,
  }),
  createEvent(
    'invoice.paid',
    buildInvoice({ name: 'a7', customer: 'cus_ann', at: NOW, amount: 700, currency: 'eur' }, true),
  ),
  createEvent('customer.subscription.created', buildSubscription({ name: 'a8', customer: 'cus_ann' })),
  createEvent(
    'customer.subscription.created',
    buildSubscription({ name: 'a9', customer: 'cus_ann' }, { status: 'past_due' }),
  ),
  createEvent('charge.dispute.created', buildDispute({ name: 'a1' }, 'needs_response')),
  createEvent('charge.dispute.created', buildDispute({ name: 'a2' }, 'under_review')),
  createEvent('charge.dispute.closed', buildDispute({ name: 'a3' }, 'won')),
  createEvent('radar.early_fraud_warning.created', buildWarning({ name: 'a1' })),
  createPaidEvent('b1', 'bob', { at: NOW - 60, amount: 9000 }),
  createEvent(
    'customer.subscription.created',
    buildSubscription({ name: 'b2', customer: 'cus_bob' }, { status: 'trialing' }),
  ),
  createEvent('charge.dispute.created', buildDispute({ name: 'b1', amount: 9000 }, 'lost')),
  createPaidEvent('guest', 'guest', { at: NOW - 30, amount: 50 }),
  createEvent('charge.dispute.created', buildDispute({ name: 'unknown' }, 'needs_response')),
]
