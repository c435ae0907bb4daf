import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startEdge } from '../edge/harness.ts'
import { assertRefused } from '../edge/orgs-help.ts'
import { buildCharge, buildInvoice, createEvent } from '../payment-events.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'
import { until } from '../until.ts'

const world = await getSharedPaymentsWorld()
const { call, link, open, createPayment, people, query, send, stripe, transaction, unconfigured } = world

const impatient = await startEdge(world.url, { env: { ...world.env, REQUEST_WAIT_SECONDS: '0' } })

let names = 0
/** Adds an account with a payment. */
async function addPayment(amount = 2000) {
  const [who] = await people(1)
  const name = `refund${++names}x`
  await link(who!, name)
  const id = await createPayment(name, amount)
  const refund = (json?: object, headers?: Record<string, string>) =>
    call(who!, 'POST', `/refund/${id}`, json, headers)
  const readStatus = async () => (await transaction(who!, id)).status
  const listRefunds = () => stripe.account.refunds.filter(({ charge }) => charge === `ch_${name}`)
  const sums = () => query('select refunds::int, reserved::int from payment_transaction where id = $1', [id])
  return { who: who!, name, id, refund, status: readStatus, refunded: listRefunds, sums }
}

describe('a refund', () => {
  test('without an amount refunds the whole payment', async () => {
    const { id, refund, refunded, status, who } = await addPayment()
    const answer = await refund()
    assert.equal(answer.status, 200, answer.text)
    const { id: own, created_at, ...rest } = answer.json
    const taken = refunded()[0]!
    assert.deepEqual(rest, {
      provider_transaction_id: taken.id,
      type: 'refund',
      status: 'succeeded',
      amount: 2000,
      currency: 'usd',
      description: `Refund of transaction ${id}`,
    })
    assert.equal(created_at, new Date(Number(taken.created) * 1000).toISOString())
    assert.deepEqual(await transaction(who, own), answer.json)
    assert.equal(await status(), 'refunded')
    const [row] = await query('select charge_id::int from payment_transaction where id = $1', [own])
    assert.equal(row!.charge_id, id)
    assertRefused(
      await refund(),
      400,
      'Only a successful charge can be refunded; this transaction is refunded',
    )
    assertRefused(
      await call(who, 'POST', `/refund/${own}`),
      400,
      'Only a successful charge can be refunded; this transaction is a refund',
    )
  })

  test('of a part leaves the rest refundable', async () => {
    const { refund, refunded, status } = await addPayment()
    assert.equal((await refund({ amount: 500 })).json.amount, 500)
    assert.equal(await status(), 'partially_refunded')
    assertRefused(await refund({ amount: 1501 }), 400, 'At most 1500 of the charge can still be refunded')
    assert.equal((await refund({})).json.amount, 1500)
    assert.equal(await status(), 'refunded')
    assert.deepEqual(
      refunded().map(({ amount }) => amount),
      [500, 1500],
    )
  })

  test('sends its reason to the provider, and other text as a note in the metadata', async () => {
    const { refund, refunded } = await addPayment()
    for (const reason of ['requested_by_customer', 'duplicate', 'fraudulent', 'arrived broken'])
      assert.equal((await refund({ amount: 100, reason })).status, 200)
    const reasons = refunded().map(({ reason, metadata }) => [reason, (metadata as { note?: string }).note])
    assert.deepEqual(reasons, [
      ['requested_by_customer', undefined],
      ['duplicate', undefined],
      ['fraudulent', undefined],
      [null, 'arrived broken'],
    ])
  })

  test('is rejected for invalid input', async () => {
    const { refund, refunded } = await addPayment()
    for (const json of [
      { amount: 0 },
      { amount: -1 },
      { amount: 1.5 },
      { amount: '5' },
      { reason: '' },
      { reason: 'x'.repeat(501) },
      { note: 'x' },
    ])
      assertRefused(await refund(json), 422)
    assert.equal(refunded().length, 0)
  })

  test("returns the same 404 for a missing payment and for another account's", async () => {
    const { id, who } = await addPayment()
    const [other] = await people(1)
    const answers = await Promise.all([
      call(other!, 'POST', `/refund/${id}`, { amount: 1 }),
      call(who, 'POST', '/refund/2147483647', { amount: 1 }),
    ])
    for (const answer of answers) assertRefused(answer, 404, 'Transaction not found')
    assert.deepEqual(answers[0]!.bytes, answers[1]!.bytes)
    assertRefused(await call(null, 'POST', `/refund/${id}`), 401)
    assertRefused(await call(who, 'POST', '/refund/x'), 422)
  })

  test('returns 503 without a provider, once the payment is found', async () => {
    const { id, who, sums } = await addPayment()
    const ask = (path: string) => unconfigured.post(`/api/v1/payment/refund/${path}`, { token: who.token })
    assertRefused(await ask(String(id)), 503, 'Payments are not configured. Set PROVIDER_SECRET_KEY.')
    assertRefused(await ask('2147483647'), 404)
    assert.deepEqual(await sums(), [{ refunds: 0, reserved: 0 }])
  })

  test('of a failed payment is rejected', async () => {
    const { name, refund, who, id } = await addPayment()
    await query(
      `update payment_transaction set facts = jsonb_set(facts, '{outcome}', '["0", "failed"]') where id = $1`,
      [id],
    )
    assert.equal((await transaction(who, id)).status, 'failed', name)
    assertRefused(await refund(), 400, /is failed$/)
  })

  test('in the background is a job, and happens once per Idempotency-Key', async () => {
    const { refund, refunded, who } = await addPayment()
    const headers = { 'idempotency-key': 'k', prefer: 'respond-async' }
    const [first, second] = [await refund({ amount: 10 }, headers), await refund({ amount: 10 }, headers)]
    assert.deepEqual([first.status, first.text], [202, second.text])
    await until('the job is done', async () => {
      const job = await world.api.get(`/api/v1/jobs/${first.json.job_id}`, { token: who.token })
      return job.json.status === 'done' && job.json.result.amount === 10
    })
    assert.equal(refunded().length, 1)
    assertRefused(await refund({ amount: 11 }, headers), 422)
  })

  test('of a payment known only by its invoice looks up the charge at the provider', async () => {
    const [who] = await people(1)
    await link(who!, 'byinvoice')
    stripe.account.charges.set('ch_far', {
      id: 'ch_far',
      payment_intent: 'pi_far',
      amount: 1500,
      currency: 'usd',
    })
    stripe.account.invoices.set('in_byinvoice', 'pi_far')
    await send(
      createEvent(
        'invoice.paid',
        buildInvoice({ name: 'byinvoice' }, true, { payment_intent: null, charge: null }),
      ),
    )
    const { transactions } = (await call(who!, 'GET', '/transactions')).json
    const answer = await call(who!, 'POST', `/refund/${transactions[0].id}`, { amount: 100 })
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await transaction(who!, transactions[0].id)).status, 'partially_refunded')
  })

  test('works for all callers without authentication', async () => {
    const { id } = await addPayment()
    const answer = await open.post(`/api/v1/payment/refund/${id}`, { json: { amount: 1 } })
    assert.equal(answer.status, 200, answer.text)
  })
})

describe('a refund that the provider rejects', () => {
  for (const [fault, status] of [
    ['declined', 400],
    ['invalid', 400],
    ['revoked', 401],
    ['forbidden', 401],
  ] as const)
    test(`${fault}: returns ${status} and releases the amount`, async () => {
      const { refund, status: now, sums } = await addPayment()
      stripe.faults.push(fault)
      assertRefused(await refund(), status)
      assert.deepEqual([await now(), await sums()], ['succeeded', [{ refunds: 0, reserved: 0 }]])
      assert.equal((await refund()).status, 200)
    })

  test("because of refunds made elsewhere: returns 400 with the provider's message", async () => {
    const { name, refund, refunded, sums } = await addPayment()
    stripe.account.refunds.push({
      id: `re_elsewhere_${name}`,
      amount: 1999,
      charge: `ch_${name}`,
      currency: 'usd',
      status: 'succeeded',
    })
    assertRefused(await refund(), 400, 'Refund amount (2000) is greater than unrefunded amount on charge (1)')
    assert.deepEqual([refunded().length, await sums()], [1, [{ refunds: 0, reserved: 0 }]])
  })
})

describe('a temporary failure of the provider', () => {
  for (const fault of ['busy', 'broken', 'garbage', 'refuse', 'cut'] as const)
    test(`${fault}: is retried with the same key and refunds once`, async () => {
      const { refund, refunded, status } = await addPayment()
      stripe.faults.push(fault)
      const answer = await refund({ amount: 700 })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual([refunded().length, await status()], [1, 'partially_refunded'])
    })

  test('followed by a rejection of the key keeps the amount reserved', async () => {
    const { refund, refunded, sums } = await addPayment()
    // The SDK itself retries after a cut connection, so three faults cover two attempts.
    stripe.faults.push('cut', 'broken', 'revoked')
    assertRefused(await refund({ amount: 1200 }), 401)
    assert.deepEqual([refunded().length, await sums()], [1, [{ refunds: 0, reserved: 1200 }]])
    assertRefused(await refund({ amount: 1200 }), 400, 'At most 800 of the charge can still be refunded')
  })

  test('that lasts keeps the amount reserved: a waiting caller gets 202, and the refund follows', async () => {
    const { id, refund, refunded, status, sums, who } = await addPayment()
    stripe.faults.push('broken', 'busy', 'broken')
    const answer = await impatient.post(`/api/v1/payment/refund/${id}`, {
      token: who.token,
      json: { amount: 1200 },
    })
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual(await sums(), [{ refunds: 0, reserved: 1200 }])
    assertRefused(await refund({ amount: 801 }), 400, 'At most 800 of the charge can still be refunded')
    await until('the refund is made', async () => (await status()) === 'partially_refunded')
    assert.deepEqual([refunded().length, await sums()], [1, [{ refunds: 1200, reserved: 0 }]])
  })

  test('that outlasts all tries ends the job, and keeps the amount reserved', async () => {
    const { id, refund, sums } = await addPayment()
    await world.limitRefundTries(id, 3)
    stripe.faults.push('broken', 'broken', 'broken')
    assertRefused(await refund(), 502)
    assert.deepEqual(await sums(), [{ refunds: 0, reserved: 2000 }])
    assertRefused(await refund({ amount: 1 }), 400, 'At most 0 of the charge can still be refunded')
  })
})

test('a refund that the provider has not completed counts and is pending', async () => {
  const { refund, status } = await addPayment()
  stripe.account.refundStatus = 'pending'
  const answer = await refund({ amount: 2000 })
  stripe.account.refundStatus = 'succeeded'
  assert.deepEqual([answer.json.status, await status()], ['pending', 'refunded'])
})

test('64 concurrent refunds never exceed the payment, and its status is right at every step', async () => {
  const { id, refund, refunded, sums, status } = await addPayment(1000)
  // Reads the public status and the refunds in one statement, so both have the same snapshot.
  const readSnapshot = () =>
    query(
      `select t.status, coalesce((select sum(r.amount) from payment_transaction r where r.charge_id = t.id and r.shown), 0)::int as sum
      from payment_transaction t where t.id = $1`,
      [id],
    )
  const seen = new Set<string>()
  let over = false
  const watch = async (): Promise<void> => {
    while (!over) {
      const [row] = await readSnapshot()
      const sum = row!.sum as number
      assert.ok(sum <= 1000, `${sum} of 1000`)
      assert.equal(row!.status, sum === 0 ? 'succeeded' : sum === 1000 ? 'refunded' : 'partially_refunded')
      seen.add(`${row!.status}`)
    }
  }
  const amounts = Array.from({ length: 64 }, (_, i) => (i % 2 === 0 ? 50 : 25))
  const refunds = Promise.all(amounts.map((amount) => refund({ amount }))).finally(() => {
    over = true
  })
  const [answers] = await Promise.all([refunds, watch()])
  const given = answers.filter((answer) => answer.status === 200)
  for (const answer of answers) if (answer.status !== 200) assertRefused(answer, 400)
  const sum = given.reduce((total, answer) => total + answer.json.amount, 0)
  const atProvider = refunded().reduce((total, { amount }) => total + Number(amount), 0)
  assert.deepEqual([sum, atProvider, await status()], [1000, 1000, 'refunded'])
  assert.deepEqual([await sums(), refunded().length], [[{ refunds: 1000, reserved: 0 }], given.length])
  assert.ok(seen.has('partially_refunded'))
})

test('refunds reported beyond the payment count at most its amount', async () => {
  const { id, sums } = await addPayment(100)
  await query(
    `insert into payment_transaction (charge_id, facts) values ($1, '{"refund": ["", "re_x"], "outcome": ["", "succeeded"],
      "money": ["", {"amount": 101, "currency": "usd"}], "created": ["", 1]}')`,
    [id],
  )
  assert.deepEqual(await sums(), [{ refunds: 100, reserved: 0 }])
})

test('a refund made elsewhere counts once its event arrives', async () => {
  const { name, refund, status } = await addPayment()
  stripe.account.refunds.push({
    id: `re_there_${name}`,
    amount: 1400,
    charge: `ch_${name}`,
    currency: 'usd',
    status: 'succeeded',
    created: 1_700_000_500,
  })
  await send(createEvent('charge.refunded', buildCharge({ name }, 1400)))
  assert.equal(await status(), 'partially_refunded')
  assertRefused(await refund({ amount: 601 }), 400, 'At most 600 of the charge can still be refunded')
  // The event does not contain the charge's refunds, so the worker requests them from the provider.
  await until(
    'the refund is stored',
    async () =>
      (await query(`select from payment_reference where provider_id = $1`, [`re_there_${name}`])).length ===
      1,
  )
  assert.equal((await refund({ amount: 600 })).status, 200)
  assert.equal(await status(), 'refunded')
})
