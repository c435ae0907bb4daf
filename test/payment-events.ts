import { createHmac, randomUUID } from 'node:crypto'

/** Builds and signs events in the provider's format. */

export interface TestEvent {
  readonly id: string
  readonly object: 'event'
  readonly type: string
  readonly created: number
  readonly api_version: string
  readonly livemode: boolean
  readonly data: { readonly object: Record<string, unknown>; readonly previous_attributes?: object }
}

export const WEBHOOK_SECRET = 'whsec_for_tests'

/** Returns the `Stripe-Signature` header for a body (https://docs.stripe.com/webhooks/signature). */
export function signEvent(
  body: string,
  { secret = WEBHOOK_SECRET, at = Math.floor(Date.now() / 1000) } = {},
): string {
  return `t=${at},v1=${computeMac(body, secret, at)}`
}

export function computeMac(body: string, secret: string, at: number): string {
  return createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
}

export function createEvent(
  type: string,
  object: Record<string, unknown>,
  more: { id?: string; created?: number; before?: object } = {},
): TestEvent {
  const { id = `evt_${randomUUID()}`, created = Math.floor(Date.now() / 1000), before } = more
  const data = before === undefined ? { object } : { object, previous_attributes: before }
  return { id, object: 'event', type, created, api_version: '2026-10-28.endive', livemode: false, data }
}

export interface PaymentIds {
  readonly name: string
  readonly customer?: string | null
  readonly amount?: number
  readonly currency?: string
  /** Creation time in seconds since the epoch. */
  readonly at?: number
}

/** Returns a payment intent in the format of the provider's events. */
export function buildIntent(given: PaymentIds, more: object = {}): Record<string, unknown> {
  const { name, customer = `cus_${name}`, amount = 2000, currency = 'usd', at = 1_700_000_000 } = given
  return {
    ...{ id: `pi_${name}`, object: 'payment_intent', amount, amount_received: amount, currency, customer },
    ...{
      created: at,
      latest_charge: `ch_${name}`,
      description: `Order ${name}`,
      status: 'succeeded',
      ...more,
    },
  }
}

/** Returns a charge in the format of `charge.refunded`. */
export function buildCharge(given: PaymentIds, refunded: number, more: object = {}): Record<string, unknown> {
  const { name, customer = `cus_${name}`, amount = 2000, currency = 'usd', at = 1_700_000_000 } = given
  return {
    ...{
      id: `ch_${name}`,
      object: 'charge',
      amount,
      amount_captured: amount,
      amount_refunded: refunded,
      currency,
    },
    ...{ customer, payment_intent: `pi_${name}`, created: at + 1, description: `Order ${name}`, paid: true },
    ...{ refunded: refunded === amount, status: 'succeeded', ...more },
  }
}

export function buildRefund(name: string, n: number, amount: number, at: number): Record<string, unknown> {
  return {
    ...{ id: `re_${name}_${n}`, object: 'refund', amount, currency: 'usd', charge: `ch_${name}` },
    ...{
      payment_intent: `pi_${name}`,
      created: at,
      reason: 'requested_by_customer',
      status: 'succeeded',
      metadata: {},
    },
  }
}

/** Returns a subscription's invoice in the format before 2025, which includes the payment intent and charge. */
export function buildInvoice(given: PaymentIds, paid: boolean, more: object = {}): Record<string, unknown> {
  const { name, customer = `cus_${name}`, amount = 1500, currency = 'usd', at = 1_700_000_000 } = given
  return {
    ...{
      id: `in_${name}`,
      object: 'invoice',
      amount_due: amount,
      amount_paid: paid ? amount : 0,
      currency,
      customer,
    },
    ...{
      created: at,
      subscription: `sub_${name}`,
      payment_intent: `pi_${name}`,
      charge: `ch_${name}`,
      description: null,
    },
    ...{
      lines: { object: 'list', data: [{ description: `1 × Plan ${name}` }] },
      status: paid ? 'paid' : 'open',
      ...more,
    },
  }
}

export function buildSubscription(given: PaymentIds, more: object = {}): Record<string, unknown> {
  const { name, customer = `cus_${name}`, at = 1_700_000_000 } = given
  const item = {
    id: `si_${name}`,
    current_period_start: at,
    current_period_end: at + 2_592_000,
    price: { id: `price_${name}`, nickname: `Plan ${name}` },
  }
  return {
    ...{ id: `sub_${name}`, object: 'subscription', customer, status: 'active', created: at },
    ...{ cancel_at_period_end: false, items: { object: 'list', data: [item] }, ...more },
  }
}

export function buildDispute(given: PaymentIds, status: string, more: object = {}): Record<string, unknown> {
  const { name, amount = 2000, currency = 'usd', at = 1_700_000_000 } = given
  return {
    ...{
      id: `du_${name}`,
      object: 'dispute',
      charge: `ch_${name}`,
      payment_intent: `pi_${name}`,
      amount,
      currency,
    },
    ...{ created: at, reason: 'fraudulent', status, evidence_details: { due_by: at + 864_000 }, ...more },
  }
}

export function buildWarning(
  { name, at = 1_700_000_000 }: PaymentIds,
  more: object = {},
): Record<string, unknown> {
  return {
    ...{
      id: `issfr_${name}`,
      object: 'radar.early_fraud_warning',
      charge: `ch_${name}`,
      payment_intent: `pi_${name}`,
    },
    ...{ actionable: true, created: at, fraud_type: 'made_with_stolen_card', ...more },
  }
}

export function buildSession(given: PaymentIds, more: object = {}): Record<string, unknown> {
  const { name, customer = `cus_${name}`, amount = 2000, currency = 'usd', at = 1_700_000_000 } = given
  return {
    ...{
      id: `cs_${name}`,
      object: 'checkout.session',
      mode: 'payment',
      payment_intent: `pi_${name}`,
      invoice: null,
    },
    ...{
      amount_total: amount,
      currency,
      customer,
      created: at - 60,
      payment_status: 'paid',
      subscription: null,
      ...more,
    },
  }
}
