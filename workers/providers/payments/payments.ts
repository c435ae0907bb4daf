import type { Stripe } from 'stripe'
import { type Failure, fail } from '../../../sql/errors.ts'
import {
  type CheckoutSelection,
  type IdempotentCall,
  isKnownReason,
  JOB_METADATA_KEY,
  type ListSnapshot,
  type NewCheckout,
  type NewRefund,
  type ObjectSnapshot,
  type PaymentProvider,
} from '../../../tasks/payments/provider.ts'
import { idOf, objectOf, type ProviderObject } from '../../../tasks/payments/reading.ts'
import { willRenew } from '../../../tasks/payments/subscriptions.ts'
import { createLazy } from '../../../tasks/platform/lazy.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { recordCall } from '../call.ts'
import { type CancellationRequests, cancelInAnyState } from './cancellation.ts'

/** Connects to Stripe through its SDK (https://docs.stripe.com/api). The job decides about retries. */

// Below the timeouts of the tasks, so that the error names the silent provider.
const TIMEOUT_MS = 20_000
// Limits the catalog. The rest of a longer price list is ignored.
const MAX_PRICES = 1000
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
    createCheckout: (checkout, once) =>
      call('checkout.sessions.create', once.signal, (client) =>
        createCheckoutSession(client, checkout, once).catch(nullIfNoCustomer),
      ),
    expireCheckouts: (customer, signal, which) => expireCheckouts(call, customer, signal, which),
    createRefund: (refund, { key, signal }) =>
      call('refunds.create', signal, async ({ refunds }) => {
        const refunded = await refunds.create(createRefundParams(refund), { idempotencyKey: key })
        const answer = addProviderTime(refunded)
        return isReplay(refunded) ? { ...answer, at: refunded.created } : answer
      }),
    cancelSubscription: (id, { key, signal }) =>
      call('subscriptions.update', signal, async (client) => {
        const changed = await cancelInAnyState(createCancellationRequests(client, id), key)
        return addProviderTime(isReplay(changed) ? await client.subscriptions.retrieve(id) : changed)
      }),
    cancelFutureSchedules: (customer, signal) => cancelFutureSchedules(call, customer, signal),
    listRenewingSubscriptions: (customer, signal) => listRunningSubscriptions(call, customer, signal),
    listSubscriptionsOfPrice: (customer, price, signal) =>
      call('subscriptions.list', signal, async ({ subscriptions }) =>
        toListSnapshot(await subscriptions.list({ customer, price, limit: 100 }).catch(nullIfNoCustomer)),
      ),
    findSubscription: (id, signal) =>
      call('subscriptions.retrieve', signal, async ({ subscriptions }) => {
        const found = await nullIfMissing(subscriptions.retrieve(id))
        return found === null ? null : addProviderTime(found)
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

type CallStripe = <T>(what: string, signal: AbortSignal, work: (stripe: Stripe) => Promise<T>) => Promise<T>

function createCall(settings: Settings['payments'], timeoutMs: number): CallStripe {
  const stripe = createLazy(() => connectStripe(settings, timeoutMs))
  return async (what, signal, work) => {
    if (settings.secretKey === undefined) throw fail('payment.not_configured')
    const client = await stripe()
    const request = recordCall({ provider: 'stripe', operation: what, url: settings.apiBaseUrl }, () =>
      work(client),
    )
    return rejectOnAbort(signal, request).catch((error) => {
      throw signal.aborted ? error : toFailure(error)
    })
  }
}

async function connectStripe(settings: Settings['payments'], timeout: number): Promise<Stripe> {
  const { Stripe } = await import('stripe')
  const { hostname, port, protocol } = new URL(settings.apiBaseUrl)
  return new Stripe(settings.secretKey!, {
    host: hostname,
    ...(port === '' ? {} : { port }),
    protocol: protocol === 'http:' ? 'http' : 'https',
    timeout,
    maxNetworkRetries: 0,
    telemetry: false,
  })
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

/** Returns null if the error says that the customer does not exist; rethrows any other error. */
function nullIfNoCustomer(error: Partial<Stripe.errors.StripeError>): null {
  if (error.code === 'resource_missing' && error.param === 'customer') return null
  throw error
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

function createCancellationRequests(
  { subscriptions, subscriptionSchedules }: Stripe,
  id: string,
): CancellationRequests<Stripe.Response<Stripe.Subscription>> {
  return {
    cancelAtPeriodEnd: (idempotencyKey) =>
      subscriptions.update(id, { cancel_at_period_end: true }, { idempotencyKey }),
    find: () => subscriptions.retrieve(id),
    releaseSchedule: (schedule, idempotencyKey) =>
      subscriptionSchedules.release(schedule, {}, { idempotencyKey }),
    cancelNow: (idempotencyKey) => subscriptions.cancel(id, {}, { idempotencyKey }),
  }
}

async function cancelFutureSchedules(call: CallStripe, customer: string, signal: AbortSignal): Promise<void> {
  const listed = listPages((after) =>
    call('subscriptionSchedules.list', signal, ({ subscriptionSchedules }) =>
      subscriptionSchedules.list({ customer, scheduled: true, limit: 100, ...after }).catch(emptyIfMissing),
    ),
  )
  for await (const page of listed)
    for (const { id } of page)
      await call('subscriptionSchedules.cancel', signal, ({ subscriptionSchedules }) =>
        subscriptionSchedules.cancel(String(id)),
      )
}

async function listRunningSubscriptions(
  call: CallStripe,
  customer: string,
  signal: AbortSignal,
): Promise<string[]> {
  const running: string[] = []
  // Stripe omits canceled subscriptions by default.
  const listed = listPages((after) =>
    call('subscriptions.list', signal, ({ subscriptions }) =>
      subscriptions.list({ customer, limit: 100, ...after }).catch(emptyIfNoCustomer),
    ),
  )
  for await (const page of listed) running.push(...page.filter(willRenew).map(({ id }) => String(id)))
  return running
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

/** Returns an empty page for a missing customer, and for substitutes for Stripe that lack the list. */
function emptyIfMissing(error: Partial<Stripe.errors.StripeError>): Page {
  return error.statusCode === 404 ? { data: [], has_more: false } : emptyIfNoCustomer(error)
}

function emptyIfNoCustomer(error: Partial<Stripe.errors.StripeError>): Page {
  return nullIfNoCustomer(error) ?? { data: [], has_more: false }
}

function createRefundParams({ payment, amount, reason, metadata }: NewRefund): Stripe.RefundCreateParams {
  const named = reason !== null && isKnownReason(reason) ? { reason } : {}
  return { ...payment, amount, metadata: { ...metadata }, ...named }
}

/** Converts the answer to a list request; null if the object whose list it is does not exist. */
function toListSnapshot(page: (StripeResponse & { readonly data: readonly object[] }) | null): ListSnapshot {
  return page === null
    ? { objects: [], at: 0 }
    : { objects: castToProviderObjects(page.data), at: addProviderTime(page).at }
}

type Page = { readonly data: readonly { readonly id: string }[]; readonly has_more: boolean }

async function* listPages(
  list: (after: { starting_after?: string }) => Promise<Page>,
): AsyncGenerator<readonly ProviderObject[]> {
  for (let last: string | undefined; ; ) {
    const page = await list(last === undefined ? {} : { starting_after: last })
    if (page.data.length > 0) yield castToProviderObjects(page.data)
    last = page.data.at(-1)?.id
    if (!page.has_more || last === undefined) return
  }
}

function castToProviderObjects(given: readonly object[]): ProviderObject[] {
  return given as unknown as ProviderObject[]
}

type StripeResponse = object & { lastResponse?: { headers?: Record<string, string> } }

/**
 * True if Stripe repeated its stored answer to an earlier request with the same key. Such an answer has old state but a
 * new date, so it would overrule the events in between.
 */
function isReplay({ lastResponse }: StripeResponse): boolean {
  return lastResponse?.headers?.['idempotent-replayed'] === 'true'
}

/** Adds the time of the provider's clock, which also dates the provider's events. */
function addProviderTime(object: StripeResponse): ObjectSnapshot {
  const date = Date.parse(object.lastResponse?.headers?.date ?? '')
  const at = Math.floor((Number.isNaN(date) ? Date.now() : date) / 1000)
  return { object: object as unknown as ProviderObject, at }
}

async function nullIfMissing<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return null
    throw error
  }
}

/** Rejects on abort. The request itself continues: it can't be recalled. */
async function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const finished = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { signal: finished.signal })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    finished.abort()
  }
}

// Messages reach payers and callers. Stripe masks keys in them; we mask anything that looks like a key, too.
const KEY_LIKE_PATTERN = /\b[sr]k_[a-z]*_?[\w*]+/g
const MAX_MESSAGE_LENGTH = 500

/** Converts an error of the SDK (https://docs.stripe.com/error-handling); returns an unknown error unchanged. */
function toFailure(error: unknown): unknown {
  const { type, message, userMessage, statusCode } = error as Partial<Stripe.errors.StripeError>
  const text = (typeof userMessage === 'string' && userMessage !== '' ? userMessage : (message ?? ''))
    .replace(KEY_LIKE_PATTERN, '***')
    .slice(0, MAX_MESSAGE_LENGTH)
  const callFailed = (reason: string): Failure => fail('payment.failed', { reason }, { cause: error })
  switch (type as string | undefined) {
    case 'StripeCardError':
      return fail('payment.declined', { reason: text }, { cause: error })
    case 'StripeInvalidRequestError':
      return fail('payment.rejected', { reason: text }, { cause: error })
    case 'StripeAuthenticationError':
      return fail('payment.key', { reason: 'it is invalid or revoked' }, { cause: error })
    case 'StripePermissionError':
      return fail('payment.key', { reason: 'it lacks a permission' }, { cause: error })
    case 'StripeRateLimitError':
      return callFailed('too many requests')
    case 'StripeConnectionError':
      return callFailed('no answer')
    // An earlier, different request used the same key, and its outcome is unknown.
    case 'StripeIdempotencyError':
    case 'StripeAPIError':
      return callFailed(statusCode === undefined ? 'no answer' : `status ${statusCode}`)
    default:
      return error
  }
}
