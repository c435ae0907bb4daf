import { type Child, startChild } from './children.ts'
import {
  formatRequest,
  type Generator,
  type LoadResult,
  ORDER_DEFAULTS,
  startGenerator,
} from './load/load.ts'
import type { Measured } from './report.ts'
import { SECRET, type Stack, signUp, storeDocuments } from './stack.ts'
import { rotate } from './stats.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
/** Number of documents of the account. With 300,000 the benchmark reads from a large table. */
const DOCUMENTS = Number(process.env.BENCH_DOCUMENTS ?? 1000)
const POOL_SIZES = (process.env.BENCH_POOL_SIZES ?? '2,4,8,16').split(',').map(Number)

interface Server {
  readonly name: string
  readonly child: Child
  /** Request text; absent if the request uses the access token. */
  readonly head?: string
}

/** Measures reads of a document by id: the edge compared with Fastify and a pool, and with bare uWebSockets.js. */
export async function measureReads(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const [id] = await storeDocuments(url, account.id, DOCUMENTS)
  const generator = await startGenerator()
  const request = formatRequest('GET', `/api/v1/documents/${id}`, account.token)
  const bodyBytes = await readBodyLength(edge.port, id, account.token)
  const key = await createApiKey(edge.port, account.token)
  const measure = ({ child, head = request }: Server): Promise<LoadResult> =>
    generator.run({
      ...ORDER_DEFAULTS,
      port: child.ready.port!,
      head,
      bodyBytes,
      serverPids: [child.pid],
      postmaster: stack.postmaster,
    })

  const fastify = await startFastestFastify(url, measure)
  const servers: Server[] = [
    { name: 'edge', child: edge },
    { name: 'edge-key', child: edge, head: formatRequest('GET', `/api/v1/documents/${id}`, key) },
    { name: 'fastify', child: fastify.child },
    { name: 'fastify-cached', child: await startFastify(url, fastify.size, true) },
    {
      name: 'bare',
      child: await startChild(new URL('./servers/bare.ts', import.meta.url), {
        DATABASE_URL: url,
        OWNER: String(account.id),
      }),
    },
  ]
  const results = new Map<string, LoadResult[]>(servers.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const server of rotate(servers, round)) results.get(server.name)!.push(await measure(server))
  }
  await stopAll(
    generator,
    servers.filter(({ child }) => child !== edge).map(({ child }) => child),
  )
  return summarize(results, fastify.size, bodyBytes)
}

function summarize(
  results: ReadonlyMap<string, readonly LoadResult[]>,
  poolSize: number,
  bodyBytes: number,
): Measured {
  const of = (name: string, figure: (result: LoadResult) => number): number[] =>
    results.get(name)!.map(figure)
  const rate = (name: string): number[] => of(name, ({ perSecond }) => perSecond)
  const against = (name: string, reference: string, target?: number) => ({
    name,
    unit: 'requests/s',
    values: rate('edge'),
    reference: { name: reference, values: rate(name.split(' ').at(-1)!) },
    ...(target === undefined ? {} : { target: { of: 'ratio' as const, atLeast: target } }),
  })
  const cpu = (name: string) => ({
    name: `CPU of ${name}`,
    unit: 'µs/request',
    values: of(name, ({ cpuMicroseconds }) => cpuMicroseconds.server),
  })
  return {
    rounds: ROUNDS,
    findings: [
      against('edge : fastify', `Fastify, pool of ${poolSize}, jwtVerify`, 4),
      against('edge : fastify-cached', `Fastify, pool of ${poolSize}, tokens cached`),
      against('edge : bare', 'bare uWS, no auth', 0.8),
      {
        name: 'edge with an API key : edge-token',
        unit: 'requests/s',
        values: rate('edge-key'),
        reference: { name: 'with an access token', values: rate('edge') },
      },
      ...['edge', 'edge-key', 'fastify', 'fastify-cached', 'bare'].map(cpu),
      {
        name: 'CPU of PostgreSQL behind the edge',
        unit: 'µs/request',
        values: of('edge', ({ cpuMicroseconds }) => cpuMicroseconds.postgres),
      },
      {
        name: 'CPU of the generator',
        unit: 'µs/request',
        values: of('edge', ({ cpuMicroseconds }) => cpuMicroseconds.generator),
      },
    ],
    notes: [`Every answer was a 200 with a body of ${bodyBytes} bytes; 64 connections.`],
    details: Object.fromEntries(results),
  }
}

/** Measures Fastify at each pool size, and returns it started with the fastest one. */
async function startFastestFastify(
  url: string,
  measure: (server: Server) => Promise<LoadResult>,
): Promise<{ child: Child; size: number }> {
  const rates: number[] = []
  for (const size of POOL_SIZES) {
    const child = await startFastify(url, size, false)
    rates.push((await measure({ name: 'fastify', child })).perSecond)
    await child.stop()
  }
  const size = POOL_SIZES[rates.indexOf(Math.max(...rates))]!
  return { child: await startFastify(url, size, false), size }
}

function startFastify(url: string, size: number, cached: boolean): Promise<Child> {
  const env = {
    DATABASE_URL: url,
    POOL_SIZE: String(size),
    SECRET_KEY: SECRET,
    NODE_ENV: 'production',
    TOKEN_CACHE: cached ? '1' : '0',
  }
  return startChild(new URL('./servers/fastify.ts', import.meta.url), env)
}

async function readBodyLength(port: number, id: number, token: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/documents/${id}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  if (response.status !== 200) throw new Error(`GET: ${response.status}`)
  return (await response.arrayBuffer()).byteLength
}

/** Creates an API key with read access to documents. */
async function createApiKey(port: number, token: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/auth/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', scopes: ['documents:read'] }),
  })
  if (response.status !== 201) throw new Error(`POST: ${response.status}`)
  return ((await response.json()) as { key: string }).key
}

function stopAll(generator: Generator, children: readonly Child[]): Promise<unknown> {
  return Promise.all([generator.stop(), ...children.map((child) => child.stop())])
}
