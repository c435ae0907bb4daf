import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  buildIntent,
  computeMac,
  createEvent,
  signEvent,
  type TestEvent,
  WEBHOOK_SECRET,
} from '../payment-events.ts'
import { startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'
import { getSharedPayments } from './payments-rows.ts'

/** Invalid provider events must all be rejected the same way and leave no row. */

const { api, query, send, url, env } = await getSharedPayments()
const PATH = '/api/v1/payment/webhook'
const testEvent: TestEvent = createEvent('payment_intent.succeeded', buildIntent({ name: 'forged' }), {
  id: 'evt_forged',
})
const body = JSON.stringify(testEvent)
const now = (): number => Math.floor(Date.now() / 1000)
const createSignature = (): string => computeMac(body, WEBHOOK_SECRET, now())
const wrongSignature = computeMac(body, 'whsec_other', now())

const badSignatures: readonly [what: string, () => string][] = [
  ['without a signature', () => ''],
  ['with a signature that is none', () => 'x'],
  ['signed with another secret', () => signEvent(body, { secret: 'whsec_other' })],
  ['signed 301 s ago', () => signEvent(body, { at: now() - 301 })],
  ['signed without a time', () => `v1=${createSignature()}`],
  ['signed at another time', () => `t=${now() - 1},v1=${createSignature()}`],
  ['with two signatures, neither right', () => `t=${now()},v1=${wrongSignature},v1=${wrongSignature}`],
  ['with a signature of another scheme', () => `t=${now()},v0=${createSignature()}`],
  ['with an empty signature', () => `t=${now()},v1=`],
  ['with half a signature', () => `t=${now()},v1=${createSignature().slice(0, 32)}`],
]
for (const [what, header] of badSignatures)
  test(`a request ${what}`, async () => {
    const answer = await send(testEvent, header())
    assertRefused(answer, 400, 'Invalid payload')
  })

const badBodies: readonly [what: string, string | Buffer][] = [
  ['empty', ''],
  ['not JSON', '{"id": "evt_broken"'],
  ['not an object', '"evt"'],
  ['null', 'null'],
  ['without an id', JSON.stringify({ ...testEvent, id: undefined })],
  ['with an id that is no text', JSON.stringify({ ...testEvent, id: 5 })],
  ['without a type', JSON.stringify({ ...testEvent, type: undefined })],
  ['without a time', JSON.stringify({ ...testEvent, created: 'now' })],
  ['without an object', JSON.stringify({ ...testEvent, data: {} })],
  [
    'nested deep',
    `${JSON.stringify({ ...testEvent, data: { object: {} } }).slice(0, -3)}"a":${'['.repeat(5000)}${']'.repeat(5000)}}}}`,
  ],
  ['huge', JSON.stringify({ ...testEvent, padding: 'x'.repeat(1_048_576) })],
]
for (const [what, text] of badBodies)
  test(`a body that is ${what}, though signed`, async () => {
    const answer = await api.post(PATH, {
      body: text,
      headers: { 'stripe-signature': signEvent(String(text)) },
    })
    assertRefused(answer, 400, 'Invalid payload')
  })

test('a body that differs from the signed bytes', async () => {
  for (const changed of [body.replace('2000', '3000'), `${body} `, JSON.stringify(testEvent, null, 1)])
    assertRefused(
      await api.post(PATH, { body: changed, headers: { 'stripe-signature': signEvent(body) } }),
      400,
      'Invalid payload',
    )
})

test('rejected requests leave no row', async () => {
  assert.deepEqual(await query(`select from payment_event where id in ('evt_forged', 'evt_broken')`), [])
  assert.deepEqual(await query(`select from payment_reference where provider_id = 'pi_forged'`), [])
})

test('one valid signature with any known secret is enough, because secrets rotate', async () => {
  // This event type adds no job.
  const other = createEvent('customer.created', { id: 'cus_1' })
  const text = JSON.stringify(other)
  const signed = (...secrets: readonly string[]): string => {
    const at = now()
    return [`t=${at}`, ...secrets.map((secret) => `v1=${computeMac(text, secret, at)}`)].join(',')
  }
  const wrong = (n: number): string[] => Array.from({ length: n }, (_, i) => `whsec_${i}`)
  const accepted = { received: 'true' }
  for (const header of [
    signed(WEBHOOK_SECRET, 'whsec_new'),
    signed('whsec_new', WEBHOOK_SECRET),
    signed(WEBHOOK_SECRET, WEBHOOK_SECRET),
    signed(...wrong(9), WEBHOOK_SECRET),
    `${signed(WEBHOOK_SECRET)},v1=${wrongSignature},v1=`,
  ])
    assert.deepEqual((await send(other, header)).json, accepted, header)
  // The edge checks at most ten signatures.
  for (const header of [signed('whsec_new', 'whsec_old'), signed(...wrong(10), WEBHOOK_SECRET)])
    assertRefused(await send(other, header), 400, 'Invalid payload')

  const both = await startEdge(url, {
    env: { ...env, PROVIDER_WEBHOOK_SECRET: `${WEBHOOK_SECRET}, whsec_new` },
  })
  const sendBoth = (header: string) =>
    both.post(PATH, {
      body: text,
      headers: { 'content-type': 'application/json', 'stripe-signature': header },
    })
  for (const secrets of [[WEBHOOK_SECRET], ['whsec_new'], ['whsec_old', 'whsec_new']])
    assert.deepEqual((await sendBoth(signed(...secrets))).json, accepted)
  assertRefused(await sendBoth(signed('whsec_old')), 400, 'Invalid payload')
})
