import assert from 'node:assert/strict'
import { test } from 'node:test'
import { event, intentObject, mac, signature, type TestEvent, WEBHOOK_SECRET } from '../payment-events.ts'
import { startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'
import { sharedPayments } from './payments-rows.ts'

/** Invalid provider events must all be rejected the same way and leave no row. */

const { api, query, send, url, env } = await sharedPayments()
const PATH = '/api/v1/payment/webhook'
const given: TestEvent = event('payment_intent.succeeded', intentObject({ name: 'forged' }), {
  id: 'evt_forged',
})
const body = JSON.stringify(given)
const now = (): number => Math.floor(Date.now() / 1000)
const good = (): string => mac(body, WEBHOOK_SECRET, now())
const bad = mac(body, 'whsec_other', now())

const headers: readonly [what: string, () => string][] = [
  ['without a signature', () => ''],
  ['with a signature that is none', () => 'x'],
  ['signed with another secret', () => signature(body, { secret: 'whsec_other' })],
  ['signed 301 s ago', () => signature(body, { at: now() - 301 })],
  ['signed without a time', () => `v1=${good()}`],
  ['signed at another time', () => `t=${now() - 1},v1=${good()}`],
  ['with two signatures, neither right', () => `t=${now()},v1=${bad},v1=${bad}`],
  ['with a signature of another scheme', () => `t=${now()},v0=${good()}`],
  ['with an empty signature', () => `t=${now()},v1=`],
  ['with half a signature', () => `t=${now()},v1=${good().slice(0, 32)}`],
]
for (const [what, header] of headers)
  test(`a request ${what}`, async () => {
    const answer = await send(given, header())
    assertRefused(answer, 400, 'Invalid payload')
  })

const signed: readonly [what: string, string | Buffer][] = [
  ['empty', ''],
  ['not JSON', '{"id": "evt_broken"'],
  ['not an object', '"evt"'],
  ['null', 'null'],
  ['without an id', JSON.stringify({ ...given, id: undefined })],
  ['with an id that is no text', JSON.stringify({ ...given, id: 5 })],
  ['without a type', JSON.stringify({ ...given, type: undefined })],
  ['without a time', JSON.stringify({ ...given, created: 'now' })],
  ['without an object', JSON.stringify({ ...given, data: {} })],
  ['thin', JSON.stringify({ id: 'evt_thin', object: 'v2.core.event', type: 'x', created: '2026-01-01' })],
  [
    'nested deep',
    `${JSON.stringify({ ...given, data: { object: {} } }).slice(0, -3)}"a":${'['.repeat(5000)}${']'.repeat(5000)}}}}`,
  ],
  ['huge', JSON.stringify({ ...given, padding: 'x'.repeat(1_048_576) })],
]
for (const [what, text] of signed)
  test(`a body that is ${what}, though signed`, async () => {
    const answer = await api.post(PATH, {
      body: text,
      headers: { 'stripe-signature': signature(String(text)) },
    })
    assertRefused(answer, 400, 'Invalid payload')
  })

test('a body that differs from the signed bytes', async () => {
  for (const changed of [body.replace('2000', '3000'), `${body} `, JSON.stringify(given, null, 1)])
    assertRefused(
      await api.post(PATH, { body: changed, headers: { 'stripe-signature': signature(body) } }),
      400,
      'Invalid payload',
    )
})

test('rejected requests leave no row', async () => {
  assert.deepEqual(
    await query(`select from payment_event where id in ('evt_forged', 'evt_broken', 'evt_thin')`),
    [],
  )
  assert.deepEqual(await query(`select from payment_reference where provider_id = 'pi_forged'`), [])
})

test('one valid signature with any known secret is enough, because secrets rotate', async () => {
  // This event type adds no job.
  const other = event('customer.created', { id: 'cus_1' })
  const text = JSON.stringify(other)
  const signed = (...secrets: readonly string[]): string => {
    const at = now()
    return [`t=${at}`, ...secrets.map((secret) => `v1=${mac(text, secret, at)}`)].join(',')
  }
  const wrong = (n: number): string[] => Array.from({ length: n }, (_, i) => `whsec_${i}`)
  const accepted = { received: 'true' }
  for (const header of [
    signed(WEBHOOK_SECRET, 'whsec_new'),
    signed('whsec_new', WEBHOOK_SECRET),
    signed(WEBHOOK_SECRET, WEBHOOK_SECRET),
    signed(...wrong(9), WEBHOOK_SECRET),
    `${signed(WEBHOOK_SECRET)},v1=${bad},v1=`,
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
