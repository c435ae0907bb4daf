import { fail } from '../../../sql/errors.ts'
import {
  type CheckoutSelection,
  type IdempotentCall,
  isKnownReason,
  JOB_METADATA_KEY,
  type NewCheckout,
  type NewRefund,
  type PaymentProvider,
} from '../../../tasks/payments/provider.ts'
import { idOf, objectOf, type ProviderObject } from '../../../tasks/payments/reading.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import {
  addProviderTime,
  emptyIfNoCustomer,
  isReplay,
  listPages,
  nullIfMissing,
  nullIfNoCustomer,
  toListSnapshot,
} from './answers.ts'
import { type CallStripe, createCall, type Stripe } from './client.ts'
import { createSubscriptionCalls } from './subscriptions.ts'

/** The payment provider Stripe. */

// Below the timeouts of the tasks, so that the error names the silent provider.
const TIMEOUT_MS = 20_000
// Limits the catalog. The rest of a longer price list is ignored.
const MAX_PRICES = 1000
// Stripe unsets a field that is empty.
const NO_CONTACT = { email: '', name: '', phone: '', description: '', address: '', shipping: '' } as const
// Key of the price in the metadata of a subscription's checkout.
const PRICE_METADATA_KEY = 'price_id'

/** Creates the configured provider; the first call loads the SDK. */
export function createPayments(
  { payments: settings }: Pick<Settings, 'payments'>,
  timeoutMs = TIMEOUT_MS,
): PaymentProvider {
  const call = createCall(settings, timeoutMs)
  return {
    createCustomer: ({ email, name, userId }, { key, signal }) =>
      call('customers.create', signal, async ({ customers }) => {
        const metadata = { user_id: String(userId) }
        const params = { email, metadata, ...(name === null ? {} : { name }) }
        return (await customers.create(params, { idempotencyKey: key })).id
      }),
    updateCustomer: (id, { email, name }, { key, signal }) =>
      call('customers.update', signal, async ({ customers }) => {
        const params = { email, name: name ?? '' }
        return (await nullIfMissing(customers.update(id, params, { idempotencyKey: key }))) !== null
      }),
    clearCustomer: (id, { key, signal }) =>
      call('customers.update', signal, async ({ customers }) => {
        await nullIfMissing(customers.update(id, NO_CONTACT, { idempotencyKey: key }))
      }),
    createCheckout: (checkout, once) =>
      call('checkout.sessions.create', once.signal, (client) =>
        createCheckoutSession(client, checkout, once).catch(nullIfNoCustomer),
      ),
    createPortal: ({ customer, returnUrl: return_url }, { key, signal }) =>
      call('billingPortal.sessions.create', signal, async ({ billingPortal: { sessions } }) => {
        const opened = sessions.create({ customer, return_url }, { idempotencyKey: key })
        return (await opened.catch(nullIfNoCustomer))?.url ?? null
      }),
    expireCheckouts: (customer, signal, which) => expireCheckouts(call, customer, signal, which),
    ...createSubscriptionCalls(call),
    createRefund: (refund, { key, signal }) =>
      call('refunds.create', signal, async ({ refunds }) => {
        const refunded = await refunds.create(createRefundParams(refund), { idempotencyKey: key })
        const answer = addProviderTime(refunded)
        return isReplay(refunded) ? { ...answer, at: refunded.created } : answer
      }),
    findSessionIntent: (id, signal) =>
      call('checkout.sessions.retrieve', signal, async ({ checkout }) =>
        idOf((await nullIfMissing(checkout.sessions.retrieve(id)))?.payment_intent),
      ),
    listInvoicePayments: (invoice, signal) =>
      call('invoicePayments.list', signal, async ({ invoicePayments }) =>
        toListSnapshot(await nullIfMissing(invoicePayments.list({ invoice, limit: 100 }))),
      ),
    listRefunds: (payment, signal) =>
      call('refunds.list', signal, async ({ refunds }) =>
        toListSnapshot(await nullIfMissing(refunds.list({ ...payment, limit: 100 }))),
      ),
    listEvents: (seconds, types, signal) =>
      listPages((after) =>
        call('events.list', signal, ({ events }) =>
          events.list({ created: { gte: seconds }, types: [...types], limit: 100, ...after }),
        ),
      ),
    listPrices: (signal) => listActivePrices(call, signal),
  }
}

async function createCheckoutSession(
  { checkout }: Stripe,
  { mode, priceId, quantity, successUrl, cancelUrl, customer, userId, jobId }: NewCheckout,
  { key }: IdempotentCall,
): Promise<{ id: string; url: string }> {
  const metadata = {
    ...(userId === null ? {} : { user_id: String(userId) }),
    ...(mode === 'subscription' ? { [PRICE_METADATA_KEY]: priceId, [JOB_METADATA_KEY]: jobId } : {}),
  }
  const session = await checkout.sessions.create(
    {
      mode,
      line_items: [{ price: priceId, quantity }],
      success_url: successUrl,
      cancel_url: cancelUrl,
      // Subscription mode always creates a customer.
      ...(customer !== null ? { customer } : mode === 'payment' ? { customer_creation: 'always' } : {}),
      ...(userId === null ? {} : { client_reference_id: String(userId) }),
      metadata,
    },
    { idempotencyKey: key },
  )
  if (typeof session.url !== 'string')
    throw fail('payment.failed', { reason: 'the checkout session has no URL' })
  return { id: session.id, url: session.url }
}

async function expireCheckouts(
  call: CallStripe,
  customer: string,
  signal: AbortSignal,
  which?: CheckoutSelection,
): Promise<void> {
  const open = listPages((after) =>
    call('checkout.sessions.list', signal, ({ checkout }) =>
      checkout.sessions.list({ customer, status: 'open', limit: 100, ...after }).catch(emptyIfNoCustomer),
    ),
  )
  for await (const page of open)
    for (const session of page)
      if (which === undefined || isSelected(session, which))
        await call('checkout.sessions.expire', signal, (client) => expireSession(client, String(session.id)))
}

function isSelected({ metadata }: ProviderObject, { priceId, exceptJobId }: CheckoutSelection): boolean {
  const { [PRICE_METADATA_KEY]: price, [JOB_METADATA_KEY]: job } = objectOf(metadata)
  return price === priceId && job !== exceptJobId
}

/** Expires a session, unless its customer has completed it in the meantime. */
async function expireSession({ checkout: { sessions } }: Stripe, id: string): Promise<void> {
  try {
    await sessions.expire(id)
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode !== 400) throw error
    if ((await sessions.retrieve(id)).status === 'open') throw error
  }
}

async function listActivePrices(call: CallStripe, signal: AbortSignal): Promise<ProviderObject[]> {
  const found: ProviderObject[] = []
  const listed = listPages((after) =>
    call('prices.list', signal, ({ prices }) =>
      prices.list({ active: true, limit: 100, expand: ['data.product'], ...after }),
    ),
  )
  for await (const page of listed) if (found.push(...page) >= MAX_PRICES) break
  return found.slice(0, MAX_PRICES)
}

function createRefundParams({ payment, amount, reason, metadata }: NewRefund): Stripe.RefundCreateParams {
  const named = reason !== null && isKnownReason(reason) ? { reason } : {}
  return { ...payment, amount, metadata: { ...metadata }, ...named }
}
