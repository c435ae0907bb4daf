import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import {
  buildDispute,
  buildIntent,
  buildSubscription,
  createEvent,
  signEvent,
  WEBHOOK_SECRET,
} from '../payment-events.ts'
import { KEY, startStripe } from '../stripe.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { findSection, READER_EMAIL, signIn, startWatchedService } from './watched-service.ts'

/** Tests that customers and admins manage payments through the pages alone. */

const chromium = findChromium()

const createPrice = (name: string, unit_amount: number, more: object) => ({
  ...{ id: `price_${name}`, object: 'price', active: true, currency: 'usd', unit_amount, nickname: name },
  ...{ product: { id: `prod_${name}`, object: 'product', name, active: true, description: null }, ...more },
})
const createPlan = (name: string, unit_amount: number, interval: string) =>
  createPrice(name, unit_amount, { type: 'recurring', recurring: { interval, interval_count: 1 } })

describe('pages of payments', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const stripe = await startStripe()
  const { open, port, query } = await startWatchedService(chromium, {
    PROVIDER_SECRET_KEY: KEY,
    PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
    PROVIDER_API_BASE_URL: stripe.url,
  })
  const { account } = stripe
  account.prices.push(
    createPlan('Pro', 1900, 'month'),
    createPlan('Team', 19_000, 'year'),
    createPrice('Pages', 1500, { currency: 'jpy', type: 'one_time', recurring: null }),
  )
  const press = (within: Page | Locator, name: string) =>
    within.getByRole('button', { name, exact: true }).click()
  const announced = (page: Page, text: string) => page.locator('#announcement').getByText(text).waitFor()

  /** Posts an event as the provider does, and waits until it is applied. */
  async function send(type: string, object: Record<string, unknown>): Promise<void> {
    const event = createEvent(type, object)
    const body = JSON.stringify(event)
    const headers = { 'content-type': 'application/json', 'stripe-signature': signEvent(body) }
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/payment/webhook`, {
      method: 'POST',
      body,
      headers,
    })
    assert.equal(answer.status, 200, await answer.text())
    const open = () => query('select from payment_event where id = $1 and applied_at is null', [event.id])
    await until(`${type} is applied`, async () => (await open()).length === 0)
  }

  async function pay(name: string, customer: string, amount: number, currency = 'usd'): Promise<void> {
    const charge = { id: `ch_${name}`, payment_intent: `pi_${name}`, amount, currency }
    account.charges.set(charge.id, charge)
    const at = Math.floor(Date.now() / 1000)
    await send('payment_intent.succeeded', buildIntent({ name, customer, amount, currency, at }))
  }

  test('a customer buys, refunds, changes, cancels and resumes', async (t) => {
    const page = await open(t, '/payments')
    for (const host of ['checkout.example', 'billing.example'])
      await page.route(`https://${host}/**`, (route) =>
        route.fulfill({ contentType: 'text/html', body: `<h1>${host}</h1>` }),
      )
    await signIn(page, READER_EMAIL)
    await findSection(page, 'Transactions').getByText('You have paid nothing yet.').waitFor()
    assert.equal(await page.getByRole('link', { name: 'All accounts' }).count(), 0)
    await press(page, 'Invoices and cards')
    await announced(page, 'You have no invoices yet.')
    const prices = findSection(page, 'Prices')
    await prices.getByText('¥1,500').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await press(prices, 'Subscribe: Pro, $19.00 per month')
    await page.getByRole('heading', { name: 'checkout.example' }).waitFor()
    assert.equal(account.sessions[0]!.price, 'price_Pro')

    const customer = account.customers[0]!.id
    const subscription = buildSubscription(
      { name: 'Pro', customer, at: Math.floor(Date.now() / 1000) },
      { currency: 'usd' },
    )
    account.subscriptions.set('sub_Pro', subscription as never)
    await send('customer.subscription.created', subscription)
    await pay('pages', customer, 2000)
    await send('charge.dispute.created', buildDispute({ name: 'pages' }, 'needs_response'))

    await page.goto(`http://127.0.0.1:${port}/payments`)
    const plans = findSection(page, 'Subscriptions')
    await press(plans, 'Cancel Plan Pro')
    await plans.getByText(/^Ends /).waitFor()
    await press(page, 'Undo')
    await plans.getByText(/^Renews /).waitFor()
    assert.equal(account.subscriptions.get('sub_Pro')!.cancel_at_period_end, false)
    await press(plans, 'Cancel Plan Pro')
    await plans.getByText(/^Ends /).waitFor()
    await press(plans, 'Resume Plan Pro')
    await announced(page, 'Plan Pro renews again')
    const dialog = page.getByRole('dialog').last()
    await press(plans, 'Change plan of Plan Pro')
    await dialog.getByLabel('New plan').selectOption('Team, $190.00 per year')
    await dialog.getByLabel('Charge the rest of this period').selectOption('Not at all')
    await press(dialog, 'Change plan')
    await announced(page, 'Your plan is now Team')

    const paid = findSection(page, 'Transactions')
    await press(paid, 'Refund Order pages of $20.00')
    await dialog.getByLabel('Amount in USD').fill('5.5')
    await dialog.getByLabel('Reason').selectOption('Duplicate')
    await press(dialog, 'Refund')
    await announced(page, 'Refunded $5.50')
    await paid.getByRole('cell', { name: 'partially refunded' }).waitFor()
    await paid.getByText('−$5.50').waitFor()
    await findSection(page, 'Disputes').getByRole('cell', { name: 'needs response' }).waitFor()
    assert.deepEqual(await findViolations(page), [])
    await paid.getByRole('combobox', { name: 'State' }).selectOption('failed')
    await paid.getByText('Nothing matches these filters.').waitFor()

    await press(page, 'Invoices and cards')
    await page.getByRole('heading', { name: 'billing.example' }).waitFor()
  })

  test('an admin sees totals, the chart and all accounts, and refunds', async (t) => {
    await pay('guest', 'cus_guest', 150_000, 'jpy')
    const page = await open(t, '/payments/all')
    await signIn(page)
    const totals = findSection(page, 'Totals')
    await totals.getByText('¥150,000').waitFor()
    await totals.getByText('$14.50').waitFor()
    const revenue = findSection(page, 'Revenue')
    await revenue.getByLabel('Currency').selectOption('JPY')
    await revenue.getByText('¥150,000 by 1 payment in 30 days').waitFor()
    await revenue.getByLabel('Period').selectOption('365 days')
    await revenue.getByText('¥150,000 by 1 payment in 365 days').waitFor()
    await page.reload()
    await revenue.getByText('¥150,000 by 1 payment in 365 days').waitFor()
    await revenue.getByText('Values').click()
    await revenue.getByRole('cell', { name: '¥150,000' }).waitFor()
    assert.deepEqual(await findViolations(page), [])

    const paid = findSection(page, 'Transactions')
    await press(paid, 'Refund Order guest of ¥150,000')
    await press(page.getByRole('dialog'), 'Refund')
    await announced(page, 'Refunded ¥150,000')
    await paid.getByText('−¥150,000').waitFor()
    await paid.getByRole('link', { name: READER_EMAIL }).first().click()
    await paid.getByText('Guest').waitFor({ state: 'detached' })
    await findSection(page, 'Disputes').getByRole('link', { name: READER_EMAIL }).waitFor()
  })

  test('without a provider, the pages say what to do', async (t) => {
    const page = await open(t, '/payments')
    await page.route('**/payment/**/status', async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ json: { ...((await answer.json()) as object), enabled: false } })
    })
    await page.route('**/payment/status', async (route) => {
      const answer = await route.fetch()
      await route.fulfill({
        json: { ...((await answer.json()) as object), enabled: false, may_refund: false },
      })
    })
    await signIn(page, READER_EMAIL)
    await page.getByText('Ask an admin of the service to set up payments.').waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Refund|Cancel|Subscribe)/ }).count(), 0)
    assert.deepEqual(await findViolations(page), [])
  })
})
