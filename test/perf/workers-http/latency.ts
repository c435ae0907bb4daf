import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { watchJobs } from '../latency.ts'
import type { Measured } from '../report.ts'
import type { Stack } from '../stack.ts'
import { median, percentile } from '../stats.ts'
import { type Service, startService } from './queues.ts'
import { SAMPLES, takeTurns } from './turns.ts'

// Longer than the interval between notifications, so that each job's notification is sent immediately.
const PAUSE_MS = 60
const MAX_EXTRA_MS = 5

/**
 * Measures the latency from a POST that adds a job to the answer of a claim that waits for it. The reference is the
 * time until a stream shows a task of ours as running. Both take turns.
 */
export async function measureLatency(stack: Stack): Promise<Measured> {
  const service = await startService(stack)
  await service.addQueue('bench')
  const own = await startOwnSamples(service)
  const pairs = await takeTurns(createClaimSamples(service), own.sample)
  const times = { claimed: pairs.ours, own: pairs.reference }
  own.close()
  await service.stop()
  const at = (share: number) => ({
    name: `POST to a waiting claim's answer, p${share * 100}`,
    unit: 'ms',
    values: [percentile(times.claimed, share)],
    reference: { name: 'POST to running, own task', values: [percentile(times.own, share)] },
  })
  const atMost = median(times.own) + MAX_EXTRA_MS
  return {
    rounds: SAMPLES,
    findings: [
      { ...at(0.5), target: { of: 'value', atMost, text: `own + ${MAX_EXTRA_MS} ms` } },
      at(0.95),
      at(0.99),
    ],
    notes: [],
    details: times,
  }
}

/** Measures a task of our own, from its POST until the stream of all jobs shows it as running or ended. */
export async function startOwnSamples({
  edge,
  account,
  addJob,
}: Service): Promise<{ sample(): Promise<number>; close(): void }> {
  const watch = await watchJobs(edge.port, account.token)
  return {
    sample: async () => {
      await delay(PAUSE_MS)
      const sentAt = performance.now()
      const jobId = await addJob('system')
      const runningAt = await watch.runningAt(jobId)
      await watch.ended(jobId)
      return runningAt - sentAt
    },
    close: () => watch.close(),
  }
}

/** Measures a job that is added while a claim waits, from its POST until the answer of the claim. */
function createClaimSamples({ client, addJob }: Service): () => Promise<number> {
  const leaseId = randomUUID()
  const claim = async () => {
    const body = { worker: 'bench', lease_id: leaseId, wait_seconds: 30 }
    const path = '/api/v1/worker-queues/bench/claims'
    const { jobs } = await client.call<{ jobs: { job_id: string; attempt: number }[] }>('POST', path, body)
    return { at: performance.now(), jobs }
  }
  return async () => {
    const claimed = claim()
    await delay(PAUSE_MS)
    const sentAt = performance.now()
    const jobId = await addJob('bench')
    const { at, jobs } = await claimed
    if (jobs.length !== 1 || jobs[0]!.job_id !== jobId) throw new Error(`Claimed ${JSON.stringify(jobs)}`)
    const items = [{ job_id: jobId, attempt: jobs[0]!.attempt, done: { result: null } }]
    await client.call('POST', `/api/v1/workers/leases/${leaseId}/reports`, { items })
    return at - sentAt
  }
}
