import { setTimeout as delay } from 'node:timers/promises'
import { type Child, startChild } from '../children.ts'
import { Statements } from '../growth/statements.ts'
import type { WaitingOrder, WaitingSeen } from '../load/waiting-claims.ts'
import type { Finding, Measured } from '../report.ts'
import type { MemoryUse } from '../servers/memory-probe.ts'
import { queryRows, type Stack } from '../stack.ts'
import { median } from '../stats.ts'
import { type Service, startService } from './queues.ts'

const CLAIMS = Number(process.env.BENCH_CLAIMS ?? 1000)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const FEW_CLAIMS = 100
const SETTLE_MS = 3000
// The longest wait is more than three times the window, in which no claim is repeated.
const WAIT = [30, 30] as const
const WINDOW_MS = Number(process.env.BENCH_SECONDS ?? 10) * 1000
const PROBE = new URL('../servers/memory-probe.ts', import.meta.url).href
const JOBS = 20

interface Round {
  /** Memory in KiB per claim: of the claims up to `CLAIMS`, and of as many more. */
  readonly firstResident: number
  readonly resident: number
  readonly heap: number
  /** Statements per second: without claims, while they wait, and while they wait for a paused queue. */
  readonly idle: number
  readonly held: number
  readonly paused: number
  /** Statements per claim that arrives. */
  readonly perClaim: number
  /** Statements per job that arrives and runs, with few and with many waiting claims. */
  readonly perJobOfFew: number
  readonly perJob: number
  readonly statements: readonly unknown[]
}

/** Measures an edge with many waiting claims: its memory, and the statements in the database while nothing comes. */
export async function measureWaitingClaims(stack: Stack): Promise<Measured> {
  const rounds: Round[] = []
  for (let i = 0; i < ROUNDS; i++) rounds.push(await measureRound(stack))
  return {
    rounds: ROUNDS,
    findings: buildFindings(rounds),
    notes: [
      `Memory is that of claims ${CLAIMS + 1} to ${2 * CLAIMS}, after a garbage collection. Statements are counted for ${WINDOW_MS / 1000} s.`,
    ],
    details: rounds,
  }
}

function buildFindings(rounds: readonly Round[]): Finding[] {
  const valuesOf = (field: Exclude<keyof Round, 'statements'>): number[] =>
    rounds.map((round) => round[field])
  const idle = { name: 'without claims', values: valuesOf('idle') }
  const few = { name: `while ${FEW_CLAIMS} wait`, values: valuesOf('perJobOfFew') }
  return [
    {
      name: 'resident memory per waiting claim',
      unit: 'KiB',
      values: valuesOf('resident'),
      target: { of: 'value', atMost: 20 },
    },
    { name: 'of the first claims', unit: 'KiB', values: valuesOf('firstResident') },
    { name: 'heap and buffers per waiting claim', unit: 'KiB', values: valuesOf('heap') },
    {
      name: `statements while ${CLAIMS} claims wait`,
      unit: '/s',
      values: valuesOf('held'),
      reference: idle,
      target: { of: 'ratio', atMost: 1.1 },
    },
    {
      name: `statements while ${2 * CLAIMS} wait for a paused queue`,
      unit: '/s',
      values: valuesOf('paused'),
      reference: idle,
    },
    { name: 'statements for a claim that finds nothing', unit: '', values: valuesOf('perClaim') },
    {
      name: `statements for a job while ${CLAIMS} claims wait`,
      unit: '',
      values: valuesOf('perJob'),
      reference: few,
    },
  ]
}

async function measureRound(stack: Stack): Promise<Round> {
  const service = await startService(stack, { NODE_OPTIONS: `--expose-gc --import ${PROBE}` })
  await service.addQueue('bench')
  const waiting = await startChild(new URL('../load/waiting-claims.ts', import.meta.url))
  const counter = await Statements.of(service.url)
  const order = { port: service.edge.port, token: service.account.token, queue: 'bench', wait: WAIT }
  const open = (workers: number): Promise<void> =>
    waiting.ask({ ...order, workers } satisfies WaitingOrder).then(() => delay(SETTLE_MS))
  const countFor = async (ms: number): Promise<number> => ((await counter.count(() => delay(ms))) * 1000) / ms
  const countJobs = async (): Promise<number> => (await counter.count(() => runJobs(service, waiting))) / JOBS

  const idle = await countFor(WINDOW_MS)
  await open(FEW_CLAIMS)
  const perJobOfFew = await countJobs()
  const few = await readMemory(service.edge)
  const opened = await counter.count(() => open(CLAIMS - FEW_CLAIMS))
  const held = await countFor(WINDOW_MS)
  const statements = await counter.list()
  const first = await readMemory(service.edge)
  const perJob = await countJobs()
  await open(CLAIMS)
  const second = await readMemory(service.edge)
  await pauseQueue(service)
  const paused = await countFor(WINDOW_MS)
  await counter.close()
  await waiting.stop()
  await service.stop()
  return {
    firstResident: (first.rss - few.rss) / (CLAIMS - FEW_CLAIMS) / 1024,
    resident: (second.rss - first.rss) / CLAIMS / 1024,
    heap: (second.heap - first.heap) / CLAIMS / 1024,
    idle,
    held,
    paused,
    perClaim: (opened - (idle * (SETTLE_MS + CLAIMS)) / 1000) / (CLAIMS - FEW_CLAIMS),
    perJobOfFew,
    perJob,
    statements,
  }
}

/** Pauses the queue as an admin does, and waits until its claims know. */
async function pauseQueue({ url }: Service): Promise<void> {
  await queryRows(
    url,
    `insert into queue_control (queue, paused_at) values ('bench', now()) returning pg_notify('queue_changed', queue)`,
  )
  await delay(SETTLE_MS)
}

/** Adds jobs one after another, and waits until each has been claimed. */
async function runJobs({ addJob }: Service, waiting: Child): Promise<void> {
  const { jobs } = await waiting.ask<WaitingSeen>('report')
  for (let i = 1; i <= JOBS; i++) {
    await addJob('bench')
    while ((await waiting.ask<WaitingSeen>('report')).jobs < jobs + i) await delay(5)
    await delay(50)
  }
}

/** Returns the median memory of a few looks, each after a garbage collection. */
async function readMemory(edge: Child): Promise<MemoryUse> {
  const looks: MemoryUse[] = []
  for (let i = 0; i < 5; i++) {
    looks.push(await edge.ask<MemoryUse>('memory'))
    await delay(200)
  }
  return { rss: median(looks.map(({ rss }) => rss)), heap: median(looks.map(({ heap }) => heap)) }
}
