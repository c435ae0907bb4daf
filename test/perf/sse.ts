import { setTimeout as delay } from 'node:timers/promises'
import { type Child, startChild } from './children.ts'
import {
  formatRequest,
  type Generator,
  type LoadResult,
  ORDER_DEFAULTS,
  startGenerator,
} from './load/load.ts'
import type { OpenStreams, StreamsSeen } from './load/streams.ts'
import { type Publisher, startPublishing } from './publish.ts'
import type { Measured } from './report.ts'
import { type Stack, signUp, storeDocuments } from './stack.ts'
import { checkStreams, waitForStableMemory, waitForTerminalFrames } from './streams-seen.ts'
import { readResidentBytes } from './usage.ts'

const STREAMS = Number(process.env.BENCH_STREAMS ?? 5000)
const JOBS = STREAMS / 10
const WARM_UP_PROBES = 500
const PROBES = Number(process.env.BENCH_ROUNDS ?? 5)
// 50 jobs a tick with 10 streams each, at ten ticks a second, make 5,000 frames a second.
const JOBS_PER_TICK = 50

/**
 * Measures an edge with thousands of open streams: its memory, the order of frames, and the latency of concurrent
 * requests.
 */
export async function measureStreams(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const [document] = await storeDocuments(url, account.id, 100)
  const publisher = await startPublishing(url, account.id, JOBS)
  const readers = await startChild(new URL('./load/streams.ts', import.meta.url))
  const generator = await startGenerator()
  const probe = (alone: boolean): Promise<LoadResult> =>
    generator.run({
      ...ORDER_DEFAULTS,
      port: edge.port,
      head: formatRequest('GET', `/api/v1/documents/${document}`, account.token),
      connections: 4,
      pauseMs: 10,
      measureMs: 2 * ORDER_DEFAULTS.measureMs,
      needsQuiet: alone,
    })
  const open = (count: number): Promise<unknown> =>
    readers.ask({
      ports: [edge.port],
      token: account.token,
      jobIds: assignJobs(publisher, count),
    } satisfies OpenStreams)

  await open(WARM_UP_PROBES)
  await readers.ask('close')
  const idle = await measureProbes(() => probe(true))
  const before = await waitForStableMemory(edge.pid)
  await open(STREAMS)
  const after = await waitForStableMemory(edge.pid)
  publisher.start(JOBS_PER_TICK)
  await delay(1000)
  const busy = await measureProbes(() => probe(false))
  await publisher.stop()
  const expected = await publisher.finish()
  const seen = await waitForTerminalFrames(readers, STREAMS)
  checkStreams(seen, assignJobs(publisher, STREAMS), expected)
  await close(publisher, readers, generator)
  return summarize({ idle, busy, before, after, end: readResidentBytes(edge.pid), seen })
}

function summarize(run: {
  idle: readonly LoadResult[]
  busy: readonly LoadResult[]
  before: number
  after: number
  end: number
  seen: StreamsSeen
}): Measured {
  const { idle, busy, before, after, seen } = run
  const pair = (name: string, of: (result: LoadResult) => number, target?: number) => ({
    name,
    unit: 'ms',
    values: busy.map(of),
    reference: { name: 'without streams', values: idle.map(of) },
    ...(target === undefined ? {} : { target: { of: 'ratio' as const, atMost: target } }),
  })
  return {
    rounds: PROBES,
    findings: [
      {
        name: 'resident memory per stream',
        unit: 'KiB',
        values: [(after - before) / STREAMS / 1024],
        target: { of: 'value', atMost: 10 },
      },
      {
        name: 'streams with every frame in order',
        unit: 'streams',
        values: [seen.finished],
        target: { of: 'value', atLeast: STREAMS },
      },
      pair('GET of a document, p95', ({ p95 }) => p95, 3),
      pair('GET of a document, p50', ({ p50 }) => p50),
      { name: 'progress to frame, p50', unit: 'ms', values: [seen.delayMs.p50] },
      { name: 'progress to frame, p95', unit: 'ms', values: [seen.delayMs.p95] },
    ],
    notes: [
      `${STREAMS} streams on ${JOBS} jobs; ${JOBS_PER_TICK * 10} events/s, ${(JOBS_PER_TICK * 10 * STREAMS) / JOBS} frames/s; ${seen.frames} frames, ${seen.gaps} out of order or missing.`,
      `The edge had ${Math.round(before / 2 ** 20)} MiB before and ${Math.round(after / 2 ** 20)} MiB with the streams.`,
    ],
    details: { ...run, seen: { ...seen, last: undefined } },
  }
}

function assignJobs({ jobIds }: Publisher, count: number): string[] {
  return Array.from({ length: count }, (_, i) => jobIds[i % jobIds.length]!)
}

async function measureProbes(probe: () => Promise<LoadResult>): Promise<LoadResult[]> {
  const results: LoadResult[] = []
  for (let i = 0; i < PROBES; i++) results.push(await probe())
  return results
}

async function close(publisher: Publisher, readers: Child, generator: Generator): Promise<void> {
  await publisher.close()
  await Promise.all([readers.stop(), generator.stop()])
}
