import { setTimeout as delay } from 'node:timers/promises'
import { type Child, startChild } from './children.ts'
import { type Generator, type LoadResult, ORDINARY, requestText, startGenerator } from './load/load.ts'
import type { OpenStreams, StreamsSeen } from './load/streams.ts'
import { type Publishing, publishing } from './publish.ts'
import type { Measured } from './report.ts'
import { type Stack, signUp, storeDocuments } from './stack.ts'
import { residentBytes, untilQuiet } from './usage.ts'

const STREAMS = Number(process.env.BENCH_STREAMS ?? 5000)
const JOBS = STREAMS / 10
const WARM = 500
const PROBES = 3
// 50 jobs of 10 streams each, ten times a second: 5,000 frames a second leave the edge.
const JOBS_PER_TICK = 50

/** One edge with thousands of open streams: its memory, the order of frames, and what others feel of it. */
export async function sse(stack: Stack): Promise<Measured> {
  const url = await stack.database()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const [document] = await storeDocuments(url, account.id, 100)
  const publisher = await publishing(url, account.id, JOBS)
  const readers = await startChild(new URL('./load/streams.ts', import.meta.url))
  const generator = await startGenerator()
  const probe = (): Promise<LoadResult> =>
    generator.run({
      ...ORDINARY,
      port: edge.port,
      head: requestText('GET', `/api/v1/documents/${document}`, account.token),
      connections: 4,
      paceMs: 10,
      measureMs: 4000,
    })
  const open = (count: number): Promise<unknown> =>
    readers.ask({
      port: edge.port,
      token: account.token,
      jobIds: streamJobs(publisher, count),
    } satisfies OpenStreams)

  await open(WARM)
  await readers.ask('close')
  const idle = await probes(probe)
  const before = await settledBytes(edge.pid)
  await open(STREAMS)
  const after = await settledBytes(edge.pid)
  publisher.start(JOBS_PER_TICK)
  await delay(1000)
  const busy = await probes(probe)
  await publisher.stop()
  const expected = await publisher.finish()
  const seen = await finished(readers)
  check(seen, streamJobs(publisher, STREAMS), expected)
  await close(publisher, readers, generator)
  return summary({ idle, busy, before, after, end: residentBytes(edge.pid), seen })
}

function summary(run: {
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

function streamJobs({ jobIds }: Publishing, count: number): string[] {
  return Array.from({ length: count }, (_, i) => jobIds[i % jobIds.length]!)
}

async function probes(probe: () => Promise<LoadResult>): Promise<LoadResult[]> {
  const results: LoadResult[] = []
  for (let i = 0; i < PROBES; i++) results.push(await probe())
  return results
}

/** Resident memory once it has stayed within 1 % for 3 s. */
async function settledBytes(pid: number): Promise<number> {
  await untilQuiet()
  const looks: number[] = []
  for (let i = 0; i < 40; i++) {
    looks.push(residentBytes(pid))
    const last = looks.slice(-7)
    if (last.length === 7 && Math.max(...last) <= Math.min(...last) * 1.01) break
    await delay(500)
  }
  return looks.at(-1)!
}

/** Waits until every stream has had its terminal frame, or for 20 s. */
async function finished(readers: Child): Promise<StreamsSeen> {
  for (let i = 0; ; i++) {
    const seen = await readers.ask<StreamsSeen>('report')
    if (seen.finished === STREAMS || i === 40) return seen
    await delay(500)
  }
}

function check(seen: StreamsSeen, jobIds: readonly string[], expected: ReadonlyMap<string, number>): void {
  // Streams opened in the order asked for, so the n-th follows the n-th job.
  const wrong = seen.last.filter((last, i) => last !== expected.get(jobIds[i]!)).length
  if (seen.gaps > 0 || seen.broken > 0 || wrong > 0) {
    throw new Error(
      `Frames were lost: ${JSON.stringify({ ...seen, last: undefined })}, ${wrong} streams with a wrong end`,
    )
  }
}

async function close(publisher: Publishing, readers: Child, generator: Generator): Promise<void> {
  await publisher.close()
  await Promise.all([readers.stop(), generator.stop()])
}
