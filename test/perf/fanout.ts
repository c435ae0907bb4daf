import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from './children.ts'
import { formatRequest, type LoadResult, ORDER_DEFAULTS, startGenerator } from './load/load.ts'
import type { OpenAllJobsStreams, Storm, StreamsSeen } from './load/streams.ts'
import { startPublishing } from './publish.ts'
import type { Finding, Measured } from './report.ts'
import { type Stack, signUp, storeDocuments } from './stack.ts'
import { checkStreams, waitForTerminalFrames } from './streams-seen.ts'
import { readResidentBytes } from './usage.ts'

const STREAMS = Number(process.env.BENCH_STREAMS ?? 10_000)
const JOBS = STREAMS / 10
const EDGES = 2
// 50 jobs a tick with 10 streams each, at ten ticks a second, make 5,000 frames a second.
const JOBS_PER_TICK = 50
const REQUESTS_PER_SECOND = 1000
// PACE_MS is the pause of a connection after an answer. It leaves 1 ms for the answer and 2 ms for timers.
const CONNECTIONS = 11
const PACE_MS = (1000 * CONNECTIONS * EDGES) / REQUESTS_PER_SECOND - 3
const SECONDS = Number(process.env.BENCH_SECONDS ?? 10)
const STORM: Storm = { perSecond: 300, seconds: SECONDS }
const STALLED_READERS = 100
// Large enough to fill a stalled reader's socket buffers within seconds.
const PADDING = ` ${'x'.repeat(2000)}`
// For a stalled reader, a stream of all jobs buffers the latest state of each of the 1,000 jobs, and one write.
const MAX_STALLED_READER_KIB = 512

/**
 * Measures two edges full of streams, with concurrent requests, a storm of reconnects, and readers that stop reading.
 */
export async function measureFanout(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edges = await Promise.all(Array.from({ length: EDGES }, () => stack.edge(url)))
  const account = await signUp(edges[0]!.port)
  const [document] = await storeDocuments(url, account.id, 100)
  const publisher = await startPublishing(url, account.id, JOBS)
  const readers = await startChild(new URL('./load/streams.ts', import.meta.url))
  const generators = await Promise.all(edges.map(() => startGenerator()))
  const head = formatRequest('GET', `/api/v1/documents/${document}`, account.token)
  const requests = (): Promise<LoadResult[]> =>
    Promise.all(
      edges.map(({ port }, i) =>
        generators[i]!.run({
          ...ORDER_DEFAULTS,
          port,
          head,
          connections: CONNECTIONS,
          pauseMs: PACE_MS,
          measureMs: SECONDS * 1000,
          needsQuiet: false,
        }),
      ),
    )

  const idle = await requests()
  const jobIds = Array.from({ length: STREAMS }, (_, i) => publisher.jobIds[(i >> 1) % JOBS]!)
  await readers.ask({ ports: edges.map(({ port }) => port), token: account.token, jobIds })
  publisher.start(JOBS_PER_TICK)
  await delay(1000)
  const steady = await requests()
  const [stormy] = await Promise.all([requests(), readers.ask(STORM)])
  await publisher.stop()
  const { delayMs } = await readers.ask<StreamsSeen>('report')
  const ofAll = (asleep: boolean): Promise<unknown> =>
    readers.ask({
      port: edges[0]!.port,
      token: account.token,
      ofAll: STALLED_READERS,
      asleep,
    } satisfies OpenAllJobsStreams)
  // Measure the same number of active readers first, to subtract the temporary memory of serving them.
  await ofAll(false)
  publisher.start(JOBS_PER_TICK, PADDING)
  const awake = await sampleMemory(edges[0]!.pid, SECONDS)
  await readers.ask('close of all')
  await ofAll(true)
  const asleep = await sampleMemory(edges[0]!.pid, 2 * SECONDS)
  await publisher.stop()
  const expected = await publisher.finish()
  const seen = await waitForTerminalFrames(readers, STREAMS)
  checkStreams(seen, jobIds, expected)
  await publisher.close()
  await Promise.all([readers, ...generators].map((child) => child.stop()))
  return {
    rounds: 1,
    findings: [
      {
        name: 'streams with every frame in order and one terminal frame',
        unit: 'streams',
        values: [seen.finished],
        target: { of: 'value', atLeast: STREAMS },
      },
      {
        name: 'requests during the streams',
        unit: 'requests/s',
        values: [sumRates(steady)],
        target: { of: 'value', atLeast: REQUESTS_PER_SECOND },
      },
      ...createLatencyFindings('during the streams', steady, idle),
      ...createLatencyFindings('during the storm', stormy, idle),
      {
        name: 'memory of an edge per stalled reader of all jobs',
        unit: 'KiB',
        values: [Math.max(0, (Math.max(...asleep) - Math.max(...awake)) / STALLED_READERS / 1024)],
        target: { of: 'value', atMost: MAX_STALLED_READER_KIB },
      },
      { name: 'progress to frame, p50', unit: 'ms', values: [delayMs.p50] },
      { name: 'progress to frame, p95', unit: 'ms', values: [delayMs.p95] },
    ],
    notes: [
      `${STREAMS} streams on ${JOBS} jobs over ${EDGES} edges; ${JOBS_PER_TICK * 10} events/s; ${seen.frames} frames, ${seen.gaps} out of order or missing, ${seen.after} after a terminal one.`,
      `The storm: ${seen.reconnects} streams cut and resumed, ${STORM.perSecond} a second; ${sumRates(stormy).toFixed(0)} requests/s meanwhile. ${STALLED_READERS} readers of all jobs read nothing for ${2 * SECONDS} s.`,
    ],
    details: { idle, steady, stormy, awake, asleep, seen: { ...seen, last: undefined } },
  }
}

/** Samples the resident memory every second. */
async function sampleMemory(pid: number, seconds: number): Promise<number[]> {
  const looks: number[] = []
  for (let second = 0; second < seconds; second++) {
    await delay(1000)
    looks.push(readResidentBytes(pid))
  }
  return looks
}

const sumRates = (results: readonly LoadResult[]): number =>
  results.reduce((sum, { perSecond }) => sum + perSecond, 0)

function createLatencyFindings(
  when: string,
  ours: readonly LoadResult[],
  idle: readonly LoadResult[],
): Finding[] {
  const pair = (name: string, of: (result: LoadResult) => number): Finding => ({
    name: `GET ${when}, ${name}`,
    unit: 'ms',
    values: ours.map(of),
    reference: { name: 'without streams', values: idle.map(of) },
  })
  return [pair('p50', ({ p50 }) => p50), pair('p95', ({ p95 }) => p95), pair('p99', ({ p99 }) => p99)]
}
