import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from '../children.ts'
import { createJsonClient } from '../load/json-client.ts'
import { formatRequest, ORDER_DEFAULTS, startGenerator } from '../load/load.ts'
import type { WaitingOrder } from '../load/waiting-claims.ts'
import type { Finding, Measured } from '../report.ts'
import { queryRows, type Stack, signUp } from '../stack.ts'
import { percentile } from '../stats.ts'
import { startOwnSamples } from './latency.ts'
import { type Service, startService } from './queues.ts'
import { type Pairs, SAMPLES, takeTurns } from './turns.ts'

const CLAIMS = Number(process.env.BENCH_CLAIMS ?? 1000)
// Workers that have started together do not claim together for long.
const WAIT = [15, 30] as const
const KEYS = 10_000
const JOBS_PER_KEY = 10
const SETTLE_MS = 3000
// The ids of the keys have the same number of digits, so that all requests have the same length.
const FIRST_KEY = 10_000
const FLOOD_TIMEOUT_MS = 300_000

/**
 * Measures tasks of our own while many claims wait, and while a worker queue that no worker serves holds many jobs. The
 * reference is another service without either, which takes turns.
 */
export async function measureNeighbours(stack: Stack): Promise<Measured> {
  const plain = await startService(stack)
  const crowded = await startService(stack)
  await crowded.addQueue('bench')
  const [reference, ours] = await Promise.all([startOwnSamples(plain), startOwnSamples(crowded)])
  const take = () => takeTurns(ours.sample, reference.sample)

  const waiting = await startChild(new URL('../load/waiting-claims.ts', import.meta.url))
  await waiting.ask({
    port: crowded.edge.port,
    token: crowded.account.token,
    queue: 'bench',
    workers: CLAIMS,
    wait: WAIT,
  } satisfies WaitingOrder)
  await delay(SETTLE_MS)
  const claims = await take()
  await waiting.stop()
  await addFlood(crowded)
  const flood = await take()
  ours.close()
  reference.close()
  await Promise.all([plain.stop(), crowded.stop()])
  return {
    rounds: SAMPLES,
    findings: [
      ...compare(`POST to running, own task, ${CLAIMS} claims wait`, claims),
      ...compare(`POST to running, own task, ${KEYS * JOBS_PER_KEY} jobs wait`, flood),
    ],
    notes: [`The jobs that wait have ${KEYS} keys, in a worker queue that no worker serves.`],
    details: { claims, flood },
  }
}

function compare(name: string, { ours, reference }: Pairs): Finding[] {
  const at = (share: number): Finding => ({
    name: `${name}, p${share * 100}`,
    unit: 'ms',
    values: [percentile(ours, share)],
    reference: { name: 'service without', values: [percentile(reference, share)] },
  })
  return [{ ...at(0.5), target: { of: 'ratio', atMost: 1.2 } }, at(0.95), at(0.99)]
}

/** Adds the jobs of another account, which has a queue of its own. */
async function addFlood({ url, edge }: Service): Promise<void> {
  const { token } = await signUp(edge.port, 'flood@example.com')
  const client = createJsonClient(edge.port, token)
  await client.call('POST', '/api/v1/worker-queues', { name: 'unserved', open: true })
  client.close()
  const job = { task_name: 'noop', queue_type: 'unserved', count: JOBS_PER_KEY, key: `${FIRST_KEY}` }
  const [head, tail] = formatRequest('POST', '/api/v1/tasks/enqueue', token, job).split(`${FIRST_KEY}"`)
  const generator = await startGenerator()
  await generator.run({
    ...ORDER_DEFAULTS,
    port: edge.port,
    head: head!,
    tail: `"${tail}`,
    connections: 16,
    ids: [FIRST_KEY, FIRST_KEY + KEYS - 1],
    status: 202,
    warmMs: 0,
    measureMs: FLOOD_TIMEOUT_MS,
    needsQuiet: false,
  })
  await generator.stop()
  const [row] = await queryRows(
    url,
    `select count(*)::int as n, count(distinct mailbox)::int as keys from job where queue = 'unserved' and status = 'available'`,
  )
  if (row!.n !== KEYS * JOBS_PER_KEY || row!.keys !== KEYS)
    throw new Error(`The flood has ${JSON.stringify(row)}`)
  await queryRows(url, 'vacuum analyze')
}
