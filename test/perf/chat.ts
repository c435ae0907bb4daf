import { startChild } from './children.ts'
import type { Heard } from './load/talkers.ts'
import type { Measured } from './report.ts'
import type { Stack } from './stack.ts'
import { residentBytes, untilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const PER_SECOND = 50
const STREAMS = Number(process.env.BENCH_STREAMS ?? 500)
const PACE = { FIRST_MS: '200', BETWEEN_MS: '40', PIECES: '25' }

/** What the service adds to a provider of fixed delays, beside a proxy that does nothing else. */
export async function chat(stack: Stack): Promise<Measured> {
  const models = await startChild(new URL('./servers/models.ts', import.meta.url), PACE)
  const base = `http://127.0.0.1:${models.ready.port}/v1`
  const proxy = await startChild(new URL('./servers/chat-proxy.ts', import.meta.url), { TARGET: base })
  const url = await stack.database()
  const env = { OPENAI_API_KEY: 'sk-bench', OPENAI_BASE_URL: base, OPEN_AREAS: 'ai', WORKER_QUEUES: 'ai' }
  const edge = await stack.edge(url, env)
  const worker = await stack.worker(url, env)
  const talkers = await startChild(new URL('./load/talkers.ts', import.meta.url))
  const talk = (port: number, request: string, streams: number, perSecond = PER_SECOND): Promise<Heard> =>
    talkers.ask({ port, request, streams, perSecond, pieces: Number(PACE.PIECES) })
  const ask = post('/api/v1/ai/chat/stream', { message: 'What time is it?' })
  const direct = post('/v1/chat/completions', { model: 'm', stream: true, messages: [] })

  await talk(edge.port, ask, 100)
  await talk(proxy.ready.port!, direct, 50)
  const ours: Heard[] = []
  const reference: Heard[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await untilQuiet()
    ours.push(await talk(edge.port, ask, STREAMS))
    await untilQuiet()
    reference.push(await talk(proxy.ready.port!, direct, STREAMS))
  }
  console.log(
    JSON.stringify(
      { ours, reference, edge: residentBytes(edge.pid), worker: residentBytes(worker.pid) },
      null,
      1,
    ),
  )
  await Promise.all([models, proxy, talkers].map((child) => child.stop()))
  return { rounds: ROUNDS, findings: [], notes: [] }
}

function post(path: string, body: object): string {
  const text = JSON.stringify(body)
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}
