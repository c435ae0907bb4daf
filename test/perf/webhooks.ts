import { setTimeout as delay } from 'node:timers/promises'
import { buildIntent, createEvent } from '../payment-events.ts'
import { startChild } from './children.ts'
import { type LoadResult, ORDER_DEFAULTS, startGenerator } from './load/load.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack } from './stack.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const SECRET = 'whsec_for_benchmarks'
// Each event needs its own id, and no round can use this many.
const IDS_PER_ROUND = 100_000
const REQUEST_HEAD = `POST /api/v1/payment/webhook HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`

/**
 * Measures payment events, which are verified, stored, applied by a worker and then acknowledged. The reference only
 * verifies and stores them.
 */
export async function measureWebhooks(stack: Stack): Promise<Measured> {
  const [url, referenceUrl] = [await stack.createDatabase(), await stack.createEmptyDatabase()]
  await queryRows(referenceUrl, 'create table event (id text primary key, data jsonb not null)')
  await fillTables(url)
  const env = { PROVIDER_WEBHOOK_SECRET: SECRET }
  const edge = await stack.edge(url, env)
  const worker = await stack.worker(url, { ...env, WORKER_QUEUES: 'payments' })
  const reference = await startChild(new URL('./servers/webhook.ts', import.meta.url), {
    DATABASE_URL: referenceUrl,
    SECRET,
  })
  const generator = await startGenerator()
  let next = 1
  const load = (port: number, pids: readonly number[], more: object = {}): Promise<LoadResult> => {
    const ids = [next, next + IDS_PER_ROUND - 1] as const
    next += IDS_PER_ROUND
    const signed = { body: buildEventBody(), secret: SECRET }
    return generator.run({
      ...ORDER_DEFAULTS,
      port,
      head: REQUEST_HEAD,
      ids,
      signed,
      serverPids: pids,
      postmaster: stack.postmaster,
      ...more,
    })
  }
  const own = [edge.pid, worker.pid]
  await load(edge.port, own)
  const [ours, theirs, calm]: LoadResult[][] = [[], [], []]
  for (let round = 0; round < ROUNDS; round++) {
    const turns = [
      async () => ours!.push(await load(edge.port, own)),
      async () => theirs!.push(await load(reference.ready.port!, [reference.pid])),
      async () => calm!.push(await load(edge.port, own, { connections: 4, pauseMs: 40 })),
    ]
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn()
  }
  await generator.stop()
  await reference.stop()
  const applied = await verifyEvents(url)
  return summarize(ours!, theirs!, calm!, applied)
}

/** Fills the tables with an hour's worth of rows, because plans for nearly empty tables differ. */
async function fillTables(url: string): Promise<void> {
  await queryRows(
    url,
    `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at)
    select gen_random_uuid(), 'payments.event', 'payments', 'payment:old' || n, '{}', 'done', 1, now() from generate_series(1, 30000) n`,
  )
  await queryRows(
    url,
    `insert into payment_event (id, type, created_at, applied_at) select 'evt_old' || n, 'x', now(), now() from generate_series(1, 30000) n`,
  )
  await queryRows(
    url,
    `select payment_apply(jsonb_build_array(jsonb_build_object('kind', 'transaction', 'ids', jsonb_build_array('pi_old' || n, 'ch_old' || n),
      'facts', jsonb_build_object('outcome', jsonb_build_array('', 'succeeded'), 'money', jsonb_build_array('', '{"amount": 1, "currency": "usd"}'::jsonb),
        'created', jsonb_build_array('', n))))) from generate_series(1, 5000) n`,
  )
  await queryRows(url, 'vacuum analyze')
}

/** Builds a successful payment, about as large as the provider's events. */
function buildEventBody(): string {
  const padding = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [`field_of_no_interest_${n}`, null]),
  )
  const object = buildIntent({ name: '{id}' }, { metadata: {}, payment_method_types: ['card'], ...padding })
  return JSON.stringify(createEvent('payment_intent.succeeded', object, { id: 'evt_{id}' }))
}

/** Asserts that all acknowledged events exist and are applied, and returns their number. */
async function verifyEvents(url: string): Promise<number> {
  for (let tries = 0; tries < 100; tries++, await delay(100)) {
    const [row] = await queryRows(
      url,
      `select count(*)::int as events, count(applied_at)::int as applied,
        (select count(*)::int from payment_transaction where provider_payment_intent_id not like 'pi_old%') as payments
        from payment_event where id not like 'evt_old%'`,
    )
    if (row!.events === row!.applied && row!.applied === row!.payments) return Number(row!.applied)
  }
  throw new Error('Not every acknowledged event was applied')
}

function summarize(
  ours: readonly LoadResult[],
  theirs: readonly LoadResult[],
  calm: readonly LoadResult[],
  applied: number,
): Measured {
  const pair = (name: string, unit: string, of: (result: LoadResult) => number) => ({
    name,
    unit,
    values: ours.map(of),
    reference: { name: 'bare uWS, verified and one insert', values: theirs.map(of) },
  })
  const quiet = (name: string, of: (result: LoadResult) => number) => ({
    name,
    unit: 'ms',
    values: calm.map(of),
  })
  return {
    rounds: ROUNDS,
    findings: [
      pair('events acknowledged', 'requests/s', ({ perSecond }) => perSecond),
      pair('p50', 'ms', ({ p50 }) => p50),
      pair('p99', 'ms', ({ p99 }) => p99),
      quiet('about 90/s: p50', ({ p50 }) => p50),
      quiet('about 90/s: p99', ({ p99 }) => p99),
      pair('CPU of edge and worker', 'µs/request', ({ cpuMicroseconds }) => cpuMicroseconds.server),
      pair('CPU of PostgreSQL', 'µs/request', ({ cpuMicroseconds }) => cpuMicroseconds.postgres),
    ],
    notes: [
      `Every answer was a 200, and all ${applied} events were applied, with one payment each. At most 64 connections; an answer waits for its job.`,
    ],
    details: { ours, theirs, calm },
  }
}
