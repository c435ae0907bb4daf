import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { buildIntent, createEvent } from '../payment-events.ts'
import { buildLifecycleEvents } from '../payment-lifecycles.ts'
import { startPaymentsWorld } from '../payments-world.ts'
import { type Child, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'

// Jobs that were interrupted twice run in isolated processes, so the third and later kills test these processes too.
const KILLS = 4
const CHARGES = Number(process.env.KILL_CHARGES ?? 30)
const REFUNDS_PER_CHARGE = 4
const LIFECYCLE_COUNT = Number(process.env.KILL_LIVES ?? 20)

const world = await startPaymentsWorld({ worker: false, env: { WORKER_MAX_TRIES: '20' } })
const { call, env, link, people, query, send, stripe, url } = world
/**
 * Starts a worker and waits until its lease names its queue pool. If the worker dies earlier, its jobs are released
 * only after a minute.
 */
const startWorker = async (): Promise<Child> => {
  const worker = await startProcess('worker', url, { ...env, WORKER_QUEUES: 'payments', ...SHORT_LEASE })
  const findNamedLease = () =>
    query(`select from worker_lease where id = $1 and pool_ids <> '{}'`, [worker.ready.lease])
  await until('the lease names the queue pool', async () => (await findNamedLease()).length === 1)
  return worker
}

test('however often workers are killed, the provider refunds nothing twice and no event is lost', async (t) => {
  const [who] = await people(1)
  await link(who!, 'payer')
  let worker = await startWorker()
  const charges = Array.from({ length: CHARGES }, (_, n) => `k${n}x`)
  for (const name of charges) {
    stripe.account.charges.set(`ch_${name}`, {
      id: `ch_${name}`,
      payment_intent: `pi_${name}`,
      amount: 1000,
      currency: 'usd',
    })
    await send(
      createEvent('payment_intent.succeeded', buildIntent({ name, amount: 1000, customer: 'cus_payer' })),
    )
  }
  const events = Array.from({ length: LIFECYCLE_COUNT }, (_, n) =>
    buildLifecycleEvents((['refunded', 'disputed', 'recovered'] as const)[n % 3]!, `life${n}x`),
  ).flat()
  const ids = await until('all payments exist', async () => {
    const rows = await query(
      `select id from payment_transaction where shown and provider_transaction_id like 'pi_k%' order by id`,
    )
    return rows.length === CHARGES && rows.map(({ id }) => id as number)
  })

  // Slow enough that kills interrupt requests. Some answers are lost after the provider has done the work.
  stripe.delayMs = 150
  stripe.faults.push(
    ...Array.from({ length: 60 }, (_, n) =>
      n % 5 === 0 ? ('cut' as const) : n % 7 === 0 ? ('busy' as const) : null,
    ),
  )
  const asked = ids.flatMap((id) =>
    Array.from({ length: REFUNDS_PER_CHARGE }, () =>
      retryUnavailable(() => call(who!, 'POST', `/refund/${id}?background=true`, { amount: 200 })),
    ),
  )
  const deliveries = events.map((one) => retryUnavailable(() => send(one)))
  for (let kill = 0; kill < KILLS; kill++) {
    await delay(100 + Math.random() * 900)
    await worker.kill()
    worker = await startWorker()
  }
  const answers = await Promise.all(asked)
  for (const answer of answers) assert.equal(answer.status, 202, answer.text)
  for (const answer of await Promise.all(deliveries)) assert.equal(answer.status, 200, answer.text)
  const jobs = answers.map(({ json }) => json.job_id as string)
  await until(
    'all jobs are done and all events applied',
    async () => {
      const [row] = await query(
        `select count(*)::int as open from job where queue = 'payments' and finished_at is null and name <> 'payments.reconcile'`,
      )
      return row!.open === 0
    },
    90_000,
  )

  const ends = await query(`select status, count(*)::int from job where id = any($1) group by 1`, [jobs])
  assert.deepEqual(ends, [{ status: 'done', count: CHARGES * REFUNDS_PER_CHARGE }])
  const requests = stripe.account.refunds.map(
    ({ metadata }) => (metadata as Record<string, string>).millrace_job,
  )
  assert.equal(requests.length, CHARGES * REFUNDS_PER_CHARGE, 'refunds at the provider')
  assert.deepEqual([...requests].sort(), [...jobs].sort(), 'one for each job')
  const sums = await query(
    `select refunds::int, reserved::int, status, count(*)::int from payment_transaction where id = any($1) group by 1, 2, 3`,
    [ids],
  )
  assert.deepEqual(sums, [{ refunds: 800, reserved: 0, status: 'partially_refunded', count: CHARGES }])
  const rows = await query(
    `select provider_refund_id as id from payment_transaction where charge_id = any($1) order by 1`,
    [ids],
  )
  assert.deepEqual(
    rows.map(({ id }) => id),
    stripe.account.refunds.map(({ id }) => id).sort(),
  )

  const applied = await query(`select id from payment_event where applied_at is not null and id = any($1)`, [
    events.map(({ id }) => id),
  ])
  assert.equal(applied.length, events.length, 'events applied')
  const again = await query(
    `select sum(attempt)::int as attempts, count(*)::int as jobs, sum(interruptions)::int from job where queue = 'payments'`,
  )
  t.diagnostic(
    `${JSON.stringify(again[0])}, ${stripe.asked.length} requests to the provider for ${requests.length} refunds`,
  )
})

/**
 * Repeats a request while its status is 503. All requests are concurrent, and those that wait too long for a connection
 * get 503.
 */
async function retryUnavailable<T extends { readonly status: number }>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503) return answer
  }
}
