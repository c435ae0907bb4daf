import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Log } from '../../tasks/platform/log.ts'
import { watchPaymentKey } from '../../workers/payments.ts'
import { createTestDatabase } from '../database.ts'
import { KEY, startStripe } from '../stripe.ts'
import { until } from '../until.ts'
import { createSettings, startTestWorker } from './parts.ts'

const { db, query, url } = await createTestDatabase()
const stripe = await startStripe()
const withQueues = (queues: string) =>
  createSettings(url, {
    PROVIDER_SECRET_KEY: KEY,
    PROVIDER_API_BASE_URL: stripe.url,
    WORKER_QUEUES: queues,
  })

const readMissing = async (): Promise<unknown> =>
  (await query('select missing_rights from payment_key'))[0]?.missing_rights

test('a worker names the rights that its key lacks, at the start and when they change', async () => {
  const said: string[] = []
  const say = (...parts: unknown[]) => said.push(String(parts.at(-1)))
  const log = { info: say, warn: say, error: say } as unknown as Log
  stripe.forbiddenPaths.add('/v1/refunds').add('/v1/events')
  const watch = watchPaymentKey(db, log, withQueues('payments'))
  await watch.runNow()
  assert.deepEqual(await readMissing(), ['Charges and Refunds', 'Events'])
  await watch.runNow()
  const lacking = 'PROVIDER_SECRET_KEY lacks rights at the provider: Charges and Refunds, Events'
  assert.deepEqual(said, [lacking], 'logged once')

  stripe.keys.delete(KEY)
  await watch.runNow()
  assert.equal(said.at(-1), 'Failed to check the rights of the payment key')
  assert.deepEqual(await readMissing(), ['Charges and Refunds', 'Events'], 'a failed check tells nothing')

  stripe.keys.add(KEY)
  stripe.forbiddenPaths.clear()
  await watch.runNow()
  assert.deepEqual(await readMissing(), [])
  assert.equal(said.at(-1), 'PROVIDER_SECRET_KEY has all rights at the provider now')
  await watch.stop()
})

test('a worker without the queue of payments checks no key, and one with it does', async () => {
  await query('delete from payment_key')
  stripe.forbiddenPaths.add('/v1/prices')
  const other = await startTestWorker(url, 'comms', { settings: withQueues('comms') })
  await other.worker.stop()
  assert.equal(await readMissing(), undefined)
  const { worker } = await startTestWorker(url, 'payments', { settings: withQueues('payments') })
  assert.deepEqual(await until('the rights are checked', readMissing), ['Prices'])
  await worker.stop()
})
