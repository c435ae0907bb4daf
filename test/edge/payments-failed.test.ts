import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildIntent, createEvent } from '../payment-events.ts'
import { until } from '../until.ts'
import { createLedger } from './ledger.ts'
import { assertRefused } from './orgs-help.ts'
import { getSharedPayments } from './payments-rows.ts'

const payments = await getSharedPayments()
const { query, send } = payments
const ledger = createLedger(payments)

/** Waits for the job of an event and claims it. */
const claimEventJob = async (id: string, count: number): Promise<string> => {
  const jobs = await until('the job of the event exists', async () => {
    const rows = await query(`select id from job where payload ->> 'event_id' = $1 order by ordinal`, [id])
    return rows.length === count && rows
  })
  const job = jobs.at(-1)!.id as string
  await ledger.claim(job)
  return job
}

test('an event whose job fails during the request is 500, and a repetition adds another job', async (t) => {
  const { hub } = payments.api.serving.edge
  const terminal = hub.waitForTerminal.bind(hub)
  // Extend the wait of two seconds, which is too short on a busy machine.
  t.mock.method(hub, 'waitForTerminal', (id: string, _: number, signal?: AbortSignal) =>
    terminal(id, 60_000, signal),
  )
  const given = createEvent('payment_intent.succeeded', buildIntent({ name: 'unlucky' }))
  const first = send(given)
  await ledger.finish(await claimEventJob(given.id, 1), 'failed', { code: 'internal', detail: 'x' })
  assertRefused(await first, 500, /^Internal error/)
  const second = send(given)
  await ledger.finish(await claimEventJob(given.id, 2), 'done', { result: {} })
  assert.deepEqual((await second).json, { received: 'true' })
})

test('an event whose job takes long is acknowledged after two seconds, because it is stored', async () => {
  const given = createEvent('payment_intent.succeeded', buildIntent({ name: 'slow' }))
  const startedAt = performance.now()
  assert.equal((await send(given)).status, 200)
  const seconds = (performance.now() - startedAt) / 1000
  assert.ok(seconds >= 1.9 && seconds < 20, `${seconds} s`)
  const again = send(given)
  await ledger.finish(await claimEventJob(given.id, 1), 'done', { result: {} })
  assert.equal((await again).status, 200, 'one that comes again meanwhile waits for the same job')
})
