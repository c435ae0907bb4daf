/** State of the Stripe account behind the stand-in, and the API that reads and changes it. */

type StripeObject = Record<string, unknown> & { readonly id: string }

export interface StripeAccount {
  readonly customers: StripeObject[]
  /** Ids of deleted customers. */
  readonly deleted: Set<string>
  readonly sessions: StripeObject[]
  /** Refundable payments by charge id. */
  readonly charges: Map<
    string,
    {
      readonly id: string
      readonly payment_intent: string
      readonly amount: number
      readonly currency: string
    }
  >
  readonly refunds: StripeObject[]
  readonly subscriptions: Map<string, StripeObject>
  /** Subscription schedules. Those with the status `active` manage the subscription that they name. */
  readonly schedules: Map<string, StripeObject>
  /** Oldest first. */
  readonly events: StripeObject[]
  readonly prices: StripeObject[]
  /** Payment intents by invoice id; with the amounts that they paid if several paid the invoice. */
  readonly invoices: Map<string, string | Readonly<Record<string, number>>>
  /** Status that new refunds get. */
  refundStatus: string
}

export interface Answer {
  readonly status: number
  readonly body: unknown
  /** True if the answer repeats that of an earlier request with the same key. */
  readonly isReplayed?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

interface Call {
  readonly method: string
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
}

export function createStripeAccount(): StripeAccount {
  return {
    customers: [],
    deleted: new Set(),
    sessions: [],
    charges: new Map(),
    refunds: [],
    subscriptions: new Map(),
    schedules: new Map(),
    events: [],
    prices: [],
    invoices: new Map(),
    refundStatus: 'succeeded',
  }
}

/** Returns an error in Stripe's format. */
export function createError(status: number, type: string, message: string, more: object = {}): Answer {
  return { status, body: { error: { type, message, ...more } } }
}

const createAnswer = (body: unknown): Answer => ({ status: 200, body })
const createMissingError = (what: string, id: string): Answer =>
  createError(404, 'invalid_request_error', `No such ${what}: '${id}'`, {
    code: 'resource_missing',
    param: 'id',
  })
const createMissingCustomerError = (id: string): Answer =>
  createError(400, 'invalid_request_error', `No such customer: '${id}'`, {
    code: 'resource_missing',
    param: 'customer',
  })
const getUnixTime = (): number => Math.floor(Date.now() / 1000)
let count = 0
const createId = (prefix: string): string => `${prefix}_${String(++count).padStart(14, '0')}`

/** Collects fields such as `metadata[key]` into an object. */
function parseNestedFields(fields: Call['fields'], name: string): Record<string, string> {
  const found = Object.entries(fields).flatMap(([key, value]) => {
    const inner = key.startsWith(`${name}[`) ? /^\w+\[(\w+)\]$/.exec(key)?.[1] : undefined
    return inner === undefined ? [] : [[inner, value] as const]
  })
  return Object.fromEntries(found)
}

/** Executes a request on the account. */
export function dispatch(account: StripeAccount, call: Call): Answer {
  const [, , kind = '', one = '', two = '', three = ''] = call.path.split('/')
  switch (`${call.method} ${kind}`) {
    case 'POST customers':
      return one === '' ? createCustomer(account, call.fields) : updateCustomer(account, one, call.fields)
    case 'POST checkout':
      return three === 'expire' ? expireSession(account, two) : createSession(account, call.fields)
    case 'GET checkout':
      if (two === '') return listOfCustomer(account, account.sessions, call.fields)
      return answerWithRow(
        'checkout.session',
        account.sessions.find(({ id }) => id === two),
        two,
      )
    case 'POST billing_portal':
      return createPortalSession(account, call.fields)
    case 'POST refunds':
      return createRefund(account, call.fields)
    case 'GET refunds':
      return listRefunds(account, call.fields)
    case 'GET subscriptions':
      if (one === '') return listSubscriptions(account, call.fields)
      return answerWithRow('subscription', account.subscriptions.get(one), one)
    case 'POST subscriptions':
      return updateSubscription(account, one, call.fields)
    case 'DELETE subscriptions':
      return cancelSubscription(account, one)
    case 'GET subscription_schedules':
      return listSchedules(account, call.fields)
    case 'POST subscription_schedules':
      return endSchedule(account, one, two)
    case 'GET events':
      return createList(call.fields, filterEvents(account, call.fields))
    case 'GET prices':
      if (one === '') return createList(call.fields, account.prices)
      return answerWithRow(
        'price',
        account.prices.find(({ id }) => id === one),
        one,
      )
    case 'GET invoice_payments':
      return listInvoicePayments(account, call.fields)
    default:
      return createError(
        404,
        'invalid_request_error',
        `Unrecognized request URL (${call.method}: ${call.path})`,
      )
  }
}

function answerWithRow(what: string, row: StripeObject | undefined, id: string): Answer {
  return row === undefined ? createMissingError(what, id) : createAnswer(row)
}

function createCustomer(account: StripeAccount, fields: Call['fields']): Answer {
  const { email, name } = fields
  const customer = {
    id: createId('cus'),
    object: 'customer',
    email,
    name,
    metadata: parseNestedFields(fields, 'metadata'),
  }
  account.customers.push(customer)
  return createAnswer(customer)
}

/** Updates a customer; an empty field unsets it. */
function updateCustomer(account: StripeAccount, id: string, fields: Call['fields']): Answer {
  const at = account.customers.findIndex((one) => one.id === id)
  const known = account.customers[at]
  if (known === undefined || account.deleted.has(id)) return createMissingError('customer', id)
  const given = Object.entries(fields).map(([key, value]) => [key, value === '' ? null : value])
  account.customers[at] = { ...known, ...Object.fromEntries(given) }
  return createAnswer(account.customers[at])
}

function createSession(account: StripeAccount, fields: Call['fields']): Answer {
  const { mode, customer = null, success_url, cancel_url } = fields
  const price = fields['line_items[0][price]']!
  if (price.startsWith('price_missing'))
    return createError(400, 'invalid_request_error', `No such price: '${price}'`, {
      code: 'resource_missing',
      param: 'line_items[0][price]',
    })
  if (customer !== null && account.deleted.has(customer)) return createMissingCustomerError(customer)
  const id = createId('cs_test')
  const session = {
    ...{ id, object: 'checkout.session', mode, customer, success_url, cancel_url, price },
    ...{ url: `https://checkout.example/${id}`, payment_intent: mode === 'payment' ? createId('pi') : null },
    ...{
      metadata: parseNestedFields(fields, 'metadata'),
      client_reference_id: fields.client_reference_id ?? null,
    },
    customer_creation: fields.customer_creation ?? null,
    status: 'open',
  }
  account.sessions.push(session)
  return createAnswer(session)
}

function createPortalSession(account: StripeAccount, { customer = '', return_url }: Call['fields']): Answer {
  if (account.deleted.has(customer)) return createMissingCustomerError(customer)
  const id = createId('bps')
  const url = `https://billing.example/${id}`
  return createAnswer({ id, object: 'billing_portal.session', customer, return_url, url })
}

function expireSession(account: StripeAccount, id: string): Answer {
  const at = account.sessions.findIndex((session) => session.id === id)
  const session = account.sessions[at]
  if (session === undefined) return createMissingError('checkout.session', id)
  if (session.status !== 'open')
    return createError(
      400,
      'invalid_request_error',
      'Only Checkout Sessions with a status in ["open"] can be expired.',
    )
  account.sessions[at] = { ...session, status: 'expired', url: null }
  return createAnswer(account.sessions[at])
}

function listSubscriptions(account: StripeAccount, fields: Call['fields']): Answer {
  const { price } = fields
  const running = [...account.subscriptions.values()].filter(
    (one) => one.status !== 'canceled' && (price === undefined || pricesOf(one).includes(price)),
  )
  return listOfCustomer(account, running, fields)
}

function pricesOf(subscription: StripeObject): (string | undefined)[] {
  const items = subscription.items as { data?: { price?: { id: string } }[] } | undefined
  return (items?.data ?? []).map(({ price }) => price?.id)
}

/** Lists rows of a customer, newest first, with the requested status. */
function listOfCustomer(
  account: StripeAccount,
  rows: readonly StripeObject[],
  fields: Call['fields'],
): Answer {
  const { customer = '', status } = fields
  if (account.deleted.has(customer)) return createMissingCustomerError(customer)
  const found = rows.filter(
    (row) => row.customer === customer && (status === undefined || row.status === status),
  )
  return createList(fields, found.reverse())
}

function chargeOf(account: StripeAccount, fields: Call['fields']) {
  const intent = fields.payment_intent
  return intent === undefined
    ? account.charges.get(fields.charge ?? '')
    : [...account.charges.values()].find((charge) => charge.payment_intent === intent)
}

const isAlive = ({ status }: StripeObject): boolean => status !== 'failed' && status !== 'canceled'

const refundsOf = (account: StripeAccount, charge: string): StripeObject[] =>
  account.refunds.filter((refund) => refund.charge === charge)

function createRefund(account: StripeAccount, fields: Call['fields']): Answer {
  const charge = chargeOf(account, fields)
  if (charge === undefined) return createMissingError('charge', fields.charge ?? fields.payment_intent ?? '')
  const left = refundsOf(account, charge.id)
    .filter(isAlive)
    .reduce((rest, refund) => rest - Number(refund.amount), charge.amount)
  const amount = Number(fields.amount ?? left)
  if (left === 0)
    return createError(400, 'invalid_request_error', `Charge ${charge.id} has already been refunded.`, {
      code: 'charge_already_refunded',
    })
  if (amount > left)
    return createError(
      400,
      'invalid_request_error',
      `Refund amount (${amount}) is greater than unrefunded amount on charge (${left})`,
    )
  const refund = {
    ...{
      id: createId('re'),
      object: 'refund',
      amount,
      currency: charge.currency,
      charge: charge.id,
      created: getUnixTime(),
    },
    ...{ payment_intent: charge.payment_intent, reason: fields.reason ?? null, status: account.refundStatus },
    metadata: parseNestedFields(fields, 'metadata'),
  }
  account.refunds.push(refund)
  return createAnswer(refund)
}

function listRefunds(account: StripeAccount, fields: Call['fields']): Answer {
  const charge = chargeOf(account, fields)
  if (charge === undefined) return createMissingError('charge', fields.charge ?? fields.payment_intent ?? '')
  return createList(fields, refundsOf(account, charge.id))
}

function updateSubscription(account: StripeAccount, id: string, fields: Call['fields']): Answer {
  const known = account.subscriptions.get(id)
  if (known === undefined) return createMissingError('subscription', id)
  if (known.status === 'canceled')
    return createError(
      400,
      'invalid_request_error',
      'A canceled subscription can only update its cancellation_details and metadata.',
    )
  if (known.schedule != null)
    return createError(
      400,
      'invalid_request_error',
      `The subscription is managed by the subscription schedule \`${known.schedule}\`, and updating any cancelation behavior directly is not allowed. Please update the schedule instead.`,
    )
  if (known.status === 'incomplete')
    return createError(
      400,
      'invalid_request_error',
      'An incomplete subscription cannot be updated like this.',
    )
  const changed = { ...known, ...changedFieldsOf(account, known, fields) }
  account.subscriptions.set(id, changed)
  return createAnswer(changed)
}

/** Returns the fields that an update of a subscription changes: its end, or the price of its item. */
function changedFieldsOf(account: StripeAccount, known: StripeObject, fields: Call['fields']): object {
  const { cancel_at_period_end, cancel_at } = fields
  if (cancel_at_period_end === 'true') return { cancel_at_period_end: true }
  if (cancel_at_period_end === 'false') return { cancel_at_period_end: false, cancel_at: null }
  if (cancel_at === '') return { cancel_at: null }
  const [item] = (known.items as { data: StripeObject[] }).data
  const price = account.prices.find(({ id }) => id === fields['items[0][price]'])
  return { items: { object: 'list', data: [{ ...item, price }] } }
}

function cancelSubscription(account: StripeAccount, id: string): Answer {
  const known = account.subscriptions.get(id)
  if (known === undefined || known.status === 'canceled') return createMissingError('subscription', id)
  const changed = { ...known, status: 'canceled' }
  account.subscriptions.set(id, changed)
  return createAnswer(changed)
}

function listSchedules(account: StripeAccount, fields: Call['fields']): Answer {
  const { scheduled, ...others } = fields
  const rows = [...account.schedules.values()].filter(
    ({ status }) => scheduled !== 'true' || status === 'not_started',
  )
  return listOfCustomer(account, rows, others)
}

/** Releases or cancels a schedule. A released subscription goes on without it. */
function endSchedule(account: StripeAccount, id: string, verb: string): Answer {
  const managed = [...account.subscriptions.values()].find(({ schedule }) => schedule === id)
  const known: StripeObject | undefined =
    account.schedules.get(id) ??
    (managed && { id, object: 'subscription_schedule', status: 'active', subscription: managed.id })
  if (known === undefined) return createMissingError('subscription_schedule', id)
  if (known.status !== 'active' && known.status !== 'not_started')
    return createError(400, 'invalid_request_error', `You cannot ${verb} a schedule that is ${known.status}.`)
  const changed = { ...known, status: verb === 'release' ? 'released' : 'canceled' }
  account.schedules.set(id, changed)
  const subscription = account.subscriptions.get(String(known.subscription))
  if (subscription !== undefined)
    account.subscriptions.set(subscription.id, {
      ...subscription,
      schedule: null,
      ...(verb === 'cancel' ? { status: 'canceled' } : {}),
    })
  return createAnswer(changed)
}

function filterEvents(account: StripeAccount, fields: Call['fields']): StripeObject[] {
  const since = Number(fields['created[gte]'] ?? 0)
  const types = Object.entries(fields)
    .filter(([key]) => key.startsWith('types['))
    .map(([, type]) => type)
  return account.events
    .filter(
      ({ created, type }) => Number(created) >= since && (types.length === 0 || types.includes(String(type))),
    )
    .reverse()
}

function listInvoicePayments(account: StripeAccount, fields: Call['fields']): Answer {
  const paid = account.invoices.get(fields.invoice ?? '') ?? {}
  const amounts = typeof paid === 'string' ? [[paid, null] as const] : Object.entries(paid)
  const rows = amounts.map(([intent, amount], n) => ({
    ...{ id: `inpay_${n}`, object: 'invoice_payment', status: 'paid', amount_paid: amount, currency: 'usd' },
    payment: { type: 'payment_intent', payment_intent: intent },
  }))
  return createList(fields, rows)
}

function createList(fields: Call['fields'], rows: readonly StripeObject[]): Answer {
  const limit = Number(fields.limit ?? 10)
  const start = rows.findIndex(({ id }) => id === fields.starting_after) + 1
  const data = rows.slice(start, start + limit)
  return createAnswer({ object: 'list', url: '/v1/list', has_more: start + limit < rows.length, data })
}
