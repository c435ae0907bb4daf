import { type Child, startChild } from './children.ts'
import type { TalkResult } from './load/talkers.ts'
import type { Finding, Measured } from './report.ts'
import { type Stack, queryRows as sqlAsk } from './stack.ts'
import { listFamilyPids, readResidentBytes, startCpuMeter, waitUntilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const STREAMS = Number(process.env.BENCH_STREAMS ?? 500)
const PER_SECOND = 50
// 25 pieces take 1.2 s, so about 60 answers run at a time, and 1250 pieces arrive per second.
const PACE = { FIRST_MS: 200, BETWEEN_MS: 40, PIECES: 25 }
// SLOW_PACE keeps all OPEN_STREAMS streams open at the same time.
const OPEN_STREAMS = Number(process.env.BENCH_OPEN_STREAMS ?? 500)
const SLOW_PACE = { FIRST_MS: OPEN_STREAMS * 30, BETWEEN_MS: 1000, PIECES: 5 }
const COALESCE_MS = 25

/**
 * Measures the latency that the service adds to a provider with fixed delays, compared with a plain proxy, and the
 * memory per open stream.
 */
export async function measureChat(stack: Stack): Promise<Measured> {
  const models = await startProvider(PACE)
  const proxy = await startChild(new URL('./servers/chat-proxy.ts', import.meta.url), {
    TARGET: baseOf(models),
  })
  const talkers = await startChild(new URL('./load/talkers.ts', import.meta.url))
  const service = await startService(stack, baseOf(models))
  const ours = (streams = STREAMS): Promise<TalkResult> =>
    talkers.ask({
      port: service.edge.port,
      request: CHAT_REQUEST,
      streams,
      perSecond: PER_SECOND,
      pieces: PACE.PIECES,
    })
  const theirs = (streams = STREAMS): Promise<TalkResult> =>
    talkers.ask({
      port: proxy.ready.port!,
      request: PROVIDER_REQUEST,
      streams,
      perSecond: PER_SECOND,
      pieces: PACE.PIECES,
    })

  await ours(200)
  await theirs(50)
  const rounds: Round[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await waitUntilQuiet()
    const { edge, worker } = service
    const meter = startCpuMeter({
      edge: () => [edge.pid],
      worker: () => [worker.pid],
      postgres: () => listFamilyPids(stack.postmaster),
      bench: () => [models.pid, talkers.pid],
    })
    const heard = await ours()
    const cpu = meter()
    await waitUntilQuiet()
    rounds.push({ heard, cpu, reference: await theirs() })
  }
  await service.stop()
  await Promise.all([models, proxy].map((child) => child.stop()))
  const memory = await openAllStreams(stack, talkers)
  await talkers.stop()
  return summarize(rounds, memory)
}

interface Round {
  readonly heard: TalkResult
  readonly reference: TalkResult
  readonly cpu: { readonly used: Readonly<Record<string, number>>; readonly foreign: number }
}

interface Memory {
  readonly heard: TalkResult
  readonly open: number
  readonly edge: number
  readonly worker: number
}

function summarize(rounds: readonly Round[], memory: Memory): Measured {
  const spread = (
    name: string,
    of: (heard: TalkResult) => number,
    atMost?: number,
    text?: string,
  ): Finding => ({
    name,
    unit: 'ms',
    values: rounds.map(({ heard }) => of(heard)),
    reference: { name: 'proxy', values: rounds.map(({ reference }) => of(reference)) },
    ...(atMost === undefined
      ? {}
      : { target: { of: 'value' as const, atMost, ...(text === undefined ? {} : { text }) } }),
  })
  const whole = rounds.flatMap(({ heard, reference }) => [heard, reference]).concat(memory.heard)
  const cpu = (name: string): string => {
    const ms = rounds.map(({ cpu: { used } }) => used[name]! / STREAMS)
    return `${name} ${(ms.reduce((sum, one) => sum + one, 0) / ms.length).toFixed(1)} ms`
  }
  const foreign = rounds.map(({ cpu }) => Math.round(cpu.foreign / (STREAMS / PER_SECOND) / 10))
  return {
    rounds: rounds.length,
    findings: [
      spread('added to the first piece, p50', ({ first }) => first.p50, 15),
      spread('added to the first piece, p95', ({ first }) => first.p95),
      spread('added to the first piece, p99', ({ first }) => first.p99, 50),
      spread('added to a piece, p50', ({ piece }) => piece.p50),
      spread('added to a piece, p95', ({ piece }) => piece.p95, COALESCE_MS + 10, 'coalescing + 10 ms'),
      {
        name: 'incomplete streams',
        unit: '',
        values: [whole.reduce((sum, { broken }) => sum + broken, 0)],
        target: { of: 'value', atMost: 0 },
      },
      {
        name: 'memory of the edge per open stream',
        unit: 'KiB',
        values: [memory.edge / OPEN_STREAMS / 1024],
      },
      {
        name: 'memory of the worker per open stream',
        unit: 'KiB',
        values: [memory.worker / OPEN_STREAMS / 1024],
      },
      {
        name: 'concurrently open streams',
        unit: '',
        values: [memory.open],
        target: { of: 'value', atLeast: OPEN_STREAMS },
      },
    ],
    notes: [
      `${STREAMS} streams per round, ${PER_SECOND} started per second; the first of ${PACE.PIECES} pieces after ${PACE.FIRST_MS} ms, another every ${PACE.BETWEEN_MS} ms. Added: beyond the provider's own time, by its timestamps.`,
      `CPU per stream: ${['edge', 'worker', 'postgres', 'bench'].map(cpu).join(', ')}; other processes used ${foreign.join(', ')} % of a core.`,
    ],
    details: { rounds, memory },
  }
}

interface Service {
  readonly edge: Child & { readonly port: number }
  readonly worker: Child
  readonly url: string
  stop(): Promise<void>
}

async function startService(stack: Stack, base: string): Promise<Service> {
  const url = await stack.createDatabase()
  const env = { OPENAI_API_KEY: 'sk-bench', OPENAI_BASE_URL: base, OPEN_AREAS: 'ai', WORKER_QUEUES: 'ai' }
  const edge = await stack.edge(url, env)
  const worker = await stack.worker(url, env)
  return { edge, worker, url, stop: async () => void (await Promise.all([edge.stop(), worker.stop()])) }
}

/** Opens many streams and measures the memory of the processes while all are open. */
async function openAllStreams(stack: Stack, talkers: Child): Promise<Memory> {
  const models = await startProvider(SLOW_PACE)
  const service = await startService(stack, baseOf(models))
  const { edge, worker } = service
  const talk = (streams: number): Promise<TalkResult> =>
    talkers.ask({
      port: edge.port,
      request: CHAT_REQUEST,
      streams,
      perSecond: PER_SECOND,
      pieces: SLOW_PACE.PIECES,
    })
  const warm = { ...SLOW_PACE, FIRST_MS: 100, BETWEEN_MS: 10 }
  await models.ask(warm)
  await talk(100)
  await models.ask(SLOW_PACE)
  const before = [readResidentBytes(edge.pid), readResidentBytes(worker.pid)] as const
  let open = 0
  let max = before
  const watch = setInterval(() => {
    void sqlAsk(
      service.url,
      `select count(*)::int as n from job where status = 'running' and name = 'ai.chat'`,
    ).then(([row]) => {
      if (Number(row!.n) < open) return
      open = Number(row!.n)
      max = [readResidentBytes(edge.pid), readResidentBytes(worker.pid)]
    })
  }, 500)
  const heard = await talk(OPEN_STREAMS)
  clearInterval(watch)
  await service.stop()
  await models.stop()
  return { heard, open, edge: max[0] - before[0], worker: max[1] - before[1] }
}

function startProvider(pace: Readonly<Record<string, number>>): Promise<Child> {
  const env = Object.fromEntries(Object.entries(pace).map(([name, value]) => [name, String(value)]))
  return startChild(new URL('./servers/models.ts', import.meta.url), env)
}

const baseOf = (models: Child): string => `http://127.0.0.1:${models.ready.port}/v1`

function formatPost(path: string, body: object): string {
  const text = JSON.stringify(body)
  const length = Buffer.byteLength(text)
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${text}`
}
const CHAT_REQUEST = formatPost('/api/v1/ai/chat/stream', { message: 'What time is it?' })
const PROVIDER_REQUEST = formatPost('/v1/chat/completions', { model: 'm', stream: true, messages: [] })
