import { connect as connectSocket, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, connect } from '../../sql/connections/driver.ts'
import { FrameReader } from './load/frames.ts'
import { formatRequest } from './load/load.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack, signUp, storeDocuments } from './stack.ts'
import { median, percentile } from './stats.ts'
import { waitUntilQuiet } from './usage.ts'

const SAMPLES = Number(process.env.BENCH_SAMPLES ?? 200)
const WARM_UP_SAMPLES = 10
// Longer than the interval between notifications, so that each job's notification is sent immediately.
const PAUSE_MS = 60
const TIMEOUT_MS = 10_000

interface Sample {
  readonly floor: number
  readonly answered: number
  readonly running: number
}

/**
 * Measures the latency from a POST on an idle service until an open stream shows the job as running. The reference is
 * three durable commits.
 */
export async function measureLatency(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  await stack.worker(url, { WORKER_QUEUES: 'documents' })
  const [first] = await storeDocuments(url, account.id, SAMPLES + WARM_UP_SAMPLES)
  await queryRows(
    url,
    'create table floor (id integer generated always as identity primary key, at timestamptz not null default now())',
  )
  const floor = await connect({ url, applicationName: 'bench-floor' })
  const watch = await watchJobs(edge.port, account.token)
  const caller = await openCaller(edge.port)
  const samples: Sample[] = []
  for (let i = 0; i < SAMPLES + WARM_UP_SAMPLES; i++) {
    if (i % 20 === 0) await waitUntilQuiet()
    const flushes = await measureThreeCommits(floor)
    await delay(PAUSE_MS)
    const sentAt = performance.now()
    const jobId = await caller.post(
      formatRequest('POST', `/api/v1/documents/${first + i}/extract?background=true`, account.token),
    )
    const answered = performance.now() - sentAt
    const running = (await watch.runningAt(jobId)) - sentAt
    await watch.ended(jobId)
    await delay(PAUSE_MS)
    if (i >= WARM_UP_SAMPLES) samples.push({ floor: flushes, answered, running })
  }
  await floor.end()
  watch.close()
  caller.close()
  return summarize(samples)
}

function summarize(samples: readonly Sample[]): Measured {
  const running = samples.map((sample) => sample.running)
  const floors = samples.map((sample) => sample.floor)
  const reference = { name: 'three durable commits', values: floors }
  const atShare = (share: number) => ({
    name: `POST to frame, p${share * 100}`,
    unit: 'ms',
    values: [percentile(running, share)],
    reference: { name: reference.name, values: [percentile(floors, share)] },
  })
  return {
    rounds: samples.length,
    findings: [
      {
        name: 'POST to frame, p50',
        unit: 'ms',
        values: running,
        reference,
        target: { of: 'value', atMost: 1.5 * median(floors) + 5, text: '1.5 x floor + 5 ms' },
      },
      atShare(0.95),
      atShare(0.99),
      { name: 'POST to answer, p50', unit: 'ms', values: samples.map(({ answered }) => answered), reference },
    ],
    notes: [
      'Sequential requests. The stream of all jobs was open before each POST; the frame is the first with the job running or ended.',
    ],
    details: samples,
  }
}

async function measureThreeCommits(client: Client): Promise<number> {
  const begin = performance.now()
  for (let i = 0; i < 3; i++) await client.query({ name: 'floor', text: 'insert into floor default values' })
  return performance.now() - begin
}

export interface JobWatch {
  /** Returns the time at which a frame first showed the job as running or ended. */
  runningAt(jobId: string): Promise<number>
  ended(jobId: string): Promise<unknown>
  close(): void
}

const END_STATUSES = ['done', 'failed', 'cancelled']

/** Opens the stream of all jobs and records when each job is running and ended. Resolves once the stream is open. */
export async function watchJobs(port: number, token: string): Promise<JobWatch> {
  const running = new Map<string, number>()
  const ended = new Map<string, number>()
  const frames = new FrameReader()
  const socket: Socket = connectSocket({ host: '127.0.0.1', port, noDelay: true })
  const opened = new Promise((resolve) => socket.once('data', resolve))
  socket.on('data', (chunk) => {
    const at = performance.now()
    for (const { data } of frames.feed(chunk.toString('latin1'))) {
      const { job_id, status } = JSON.parse(data) as { job_id: string; status: string }
      if (status !== 'queued' && !running.has(job_id)) running.set(job_id, at)
      if (END_STATUSES.includes(status)) ended.set(job_id, at)
    }
  })
  socket.write(formatRequest('GET', '/api/v1/jobs/events', token))
  await opened
  const seen = async (times: Map<string, number>, jobId: string): Promise<number> => {
    for (const end = performance.now() + TIMEOUT_MS; performance.now() < end; await delay(2)) {
      const at = times.get(jobId)
      if (at !== undefined) return at
    }
    throw new Error(`No frame arrived for job ${jobId}`)
  }
  return {
    runningAt: (jobId) => seen(running, jobId),
    ended: (jobId) => seen(ended, jobId),
    close: () => socket.destroy(),
  }
}

/** Opens a keep-alive connection for sequential POSTs. `post` returns the id of the job. */
async function openCaller(port: number): Promise<{ post(text: string): Promise<string>; close(): void }> {
  const socket: Socket = connectSocket({ host: '127.0.0.1', port, noDelay: true })
  await new Promise((resolve) => socket.once('connect', resolve))
  return {
    post: (text) =>
      new Promise((resolve, reject) => {
        socket.once('data', (chunk) => {
          const answer = chunk.toString('latin1')
          const jobId = /"job_id":"([0-9a-f-]{36})"/.exec(answer)?.[1]
          if (!answer.startsWith('HTTP/1.1 202') || jobId === undefined)
            reject(new Error(`Not accepted: ${answer}`))
          else resolve(jobId)
        })
        socket.write(text)
      }),
    close: () => socket.destroy(),
  }
}
