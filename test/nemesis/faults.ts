import { execFileSync } from 'node:child_process'
import { rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Chance } from '../chance.ts'
import type { Link } from '../flow/link.ts'
import { until } from '../until.ts'
import { WORKER_FAULTS } from './workers/faults.ts'
import type { Mode, World } from './world.ts'

/** A fault. `inject` resolves when the fault is over and the system is usable again. */
interface Fault {
  readonly name: string
  /** Relative probability. */
  readonly weight: number
  /** Modes in which the fault applies; absent if it applies in all. */
  readonly modes?: readonly Mode[]
  /** Present for faults of the database itself, which must not overlap. */
  readonly ofDatabase?: true
  /**
   * Present if the fault kills a process of the service. It is injected only if every process has been up for longer
   * than its start took. Otherwise a slow machine would do nothing but start processes.
   */
  readonly kills?: true
  inject(world: World, chance: Chance): Promise<void>
}

const LOCKED_TABLES = ['job', 'blog_post', 'comms_send', 'worker_lease', 'worker_delivery', 'document_page']

export const CHILD_KILLED = "worker's child killed"
/** Faults that end the attempts of one process. */
export const DEATHS: readonly string[] = [CHILD_KILLED, ...WORKER_FAULTS.map(({ name }) => name)]

// A page whose child dies twice is unread (`retryAfterLoss`), so a killed child gets the time for its retry.
const CHILD_KILL_INTERVAL_MS = 60_000
let nextChildKill = 0

const FAULTS: readonly Fault[] = [
  { name: 'edge killed', weight: 3, kills: true, inject: (w, c) => c.pick(w.edges).end('SIGKILL') },
  { name: 'worker killed', weight: 3, kills: true, inject: (w, c) => c.pick(w.workers).end('SIGKILL') },
  { name: 'edge stopped', weight: 1, kills: true, inject: (w, c) => c.pick(w.edges).end('SIGTERM') },
  { name: 'worker stopped', weight: 1, kills: true, inject: (w, c) => c.pick(w.workers).end('SIGTERM') },
  { name: 'member frozen', weight: 3, inject: (w, c) => c.pick(w.members).freeze(c.between(300, 8_000)) },
  {
    name: 'all killed',
    weight: 1,
    kills: true,
    inject: async (w) => void (await Promise.all(w.members.map((member) => member.end('SIGKILL')))),
  },
  {
    name: CHILD_KILLED,
    weight: 2,
    kills: true,
    inject: async (w, c) => {
      const children = w.workers.flatMap((worker) => worker.listChildPids())
      if (children.length === 0 || performance.now() < nextChildKill) return
      nextChildKill = performance.now() + CHILD_KILL_INTERVAL_MS
      kill(c.pick(children))
    },
  },
  {
    name: "member's link cut",
    weight: 3,
    inject: (w, c) => applyFor(c.pick(w.members).links, (link) => link.cut(), c.between(0, 3_000)),
  },
  {
    name: 'all links cut',
    weight: 1,
    inject: (w, c) => applyFor(w.links, (link) => link.cut(), c.between(0, 3_000)),
  },
  {
    name: "member's link slow",
    weight: 2,
    inject: (w, c) => {
      const ms = c.between(5, 200)
      return applyFor(c.pick(w.members).links, (link) => link.slow(ms), c.between(1_000, 6_000))
    },
  },
  {
    name: "member's link silent",
    weight: 3,
    inject: (w, c) => applyFor(c.pick(w.members).links, (link) => link.silence(), c.between(300, 8_000)),
  },
  {
    name: "member's answers lost",
    weight: 3,
    inject: (w, c) =>
      applyFor(c.pick(w.members).links, (link) => link.silence('answers'), c.between(300, 5_000)),
  },
  {
    name: 'all links silent',
    weight: 1,
    inject: (w, c) => applyFor(w.links, (link) => link.silence(), c.between(300, 6_000)),
  },
  {
    name: 'pooler restarted',
    weight: 4,
    modes: ['pooler'],
    inject: async (w) => w.pooler!.restart(),
  },
  {
    name: 'connections terminated',
    weight: 2,
    inject: async (w, c) => {
      const share = c.next()
      await runStatements(
        w,
        `select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend'
          and application_name like 'millrace-%' and random() < ${share}`,
      )
    },
  },
  {
    name: 'table locked',
    weight: 2,
    ofDatabase: true,
    inject: (w, c) => lockTable(w, c.pick(LOCKED_TABLES), c.between(500, 5_000)),
  },
  {
    name: 'database read-only',
    weight: 1,
    ofDatabase: true,
    inject: async (w, c) => {
      await runStatements(w, 'alter system set default_transaction_read_only = on', 'select pg_reload_conf()')
      await delay(c.between(500, 5_000))
      const reset = ['alter system reset default_transaction_read_only', 'select pg_reload_conf()']
      await until('the database accepts writes again', () => runStatements(w, ...reset), 60_000)
    },
  },
  {
    name: 'database restarted',
    weight: 2,
    ofDatabase: true,
    inject: (w, c) => restartDatabase(w, c, 'SIGINT'),
  },
  {
    name: 'database crashed',
    weight: 2,
    ofDatabase: true,
    inject: (w, c) => restartDatabase(w, c, 'SIGQUIT'),
  },
  {
    name: 'database killed',
    weight: 1,
    ofDatabase: true,
    inject: (w, c) => restartDatabase(w, c, 'SIGKILL'),
  },
  {
    name: 'disk full',
    weight: 2,
    modes: ['direct', 'pooler'],
    ofDatabase: true,
    inject: (w, c) => fillDisk(w, c.between(500, 5_000)),
  },
  {
    name: 'failover, killed',
    weight: 3,
    modes: ['standby'],
    ofDatabase: true,
    inject: async (w, c) => {
      await w.cluster.primary.kill('SIGKILL')
      await failOver(w, c)
    },
  },
  {
    name: 'failover, silent',
    weight: 3,
    modes: ['standby'],
    ofDatabase: true,
    inject: async (w, c) => {
      const old = w.cluster.urls.indexOf(w.cluster.primary.url)
      const links = w.members.map((member) => member.links[old]!)
      // Isolate the old primary, as operators do: processes that still reach it would read old data.
      for (const link of links) link.isolate()
      await failOver(w, c)
      for (const link of links) link.rejoin()
    },
  },
  ...WORKER_FAULTS,
]

const FAULT_INTERVAL_MS = [200, 4_000] as const
const MAX_CONCURRENT_FAULTS = 3

/** Injects random faults, up to three at a time, until stopped. */
export class Nemesis {
  /** Number of injections by fault name. */
  readonly counts = new Map<string, number>()
  /** Times of all faults in ms since the start, to find the cause of a violation. */
  readonly history: { readonly at: number; readonly fault: string; readonly over: boolean }[] = []
  /** Faults that could not be injected or undone. These are not violations. */
  readonly failures: string[] = []
  readonly #world: World
  readonly #chance: Chance
  readonly #startedAt = performance.now()
  readonly #open = new Set<Promise<void>>()
  #databaseBusy = false
  #stopped = false
  readonly #running: Promise<void>

  constructor(world: World, chance: Chance) {
    this.#world = world
    this.#chance = chance
    this.#running = this.#run()
  }

  /** Returns the number of injections of these faults. */
  count(names: readonly string[]): number {
    return names.reduce((sum, name) => sum + (this.counts.get(name) ?? 0), 0)
  }

  /** Stops injecting; resolves when the last fault is over and all links work. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    await Promise.all(this.#open)
    for (const link of this.#world.links) link.restore()
  }

  async #run(): Promise<void> {
    const { mode, disk } = this.#world
    const possible = FAULTS.filter(
      ({ modes, name }) =>
        (modes === undefined || modes.includes(mode)) && (name !== 'disk full' || disk !== null),
    )
    const lots = possible.flatMap((fault) => Array<Fault>(fault.weight).fill(fault))
    while (!this.#stopped) {
      await delay(this.#chance.between(...FAULT_INTERVAL_MS))
      const fault = this.#chance.pick(lots)
      if (this.#stopped || this.#open.size >= MAX_CONCURRENT_FAULTS || !this.#isPossible(fault)) continue
      const open: Promise<void> = this.#inject(fault).finally(() => this.#open.delete(open))
      this.#open.add(open)
    }
  }

  #isPossible({ ofDatabase, kills }: Fault): boolean {
    if (ofDatabase) return !this.#databaseBusy
    return !kills || this.#world.members.every(({ isSteady }) => isSteady)
  }

  async #inject(fault: Fault): Promise<void> {
    const note = (over: boolean): void =>
      void this.history.push({ at: Math.round(performance.now() - this.#startedAt), fault: fault.name, over })
    this.counts.set(fault.name, (this.counts.get(fault.name) ?? 0) + 1)
    if (fault.ofDatabase) this.#databaseBusy = true
    note(false)
    await fault
      .inject(this.#world, this.#chance)
      .catch((error: Error) => this.failures.push(`${fault.name}: ${error.stack}`))
    note(true)
    if (fault.ofDatabase) this.#databaseBusy = false
  }
}

/** Applies `act` to links, and restores the links after `ms`. */
async function applyFor(links: readonly Link[], act: (link: Link) => void, ms: number): Promise<void> {
  for (const link of links) act(link)
  await delay(ms)
  for (const link of links) link.restore()
}

/** Runs `work` on a connection that bypasses all links. Returns false if another fault made it fail. */
async function withDatabase(world: World, work: (client: pg.Client) => Promise<unknown>): Promise<boolean> {
  const client = new pg.Client({ connectionString: world.cluster.primary.url })
  client.on('error', () => {})
  try {
    await client.connect()
    await work(client)
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

function runStatements(world: World, ...statements: readonly string[]): Promise<boolean> {
  return withDatabase(world, async (client) => {
    for (const statement of statements) await client.query(statement)
  })
}

async function lockTable(world: World, table: string, ms: number): Promise<void> {
  await withDatabase(world, async (client) => {
    await client.query('begin')
    await client.query(`lock table ${table} in access exclusive mode`)
    await delay(ms)
  })
}

async function restartDatabase(world: World, chance: Chance, signal: NodeJS.Signals): Promise<void> {
  const { primary } = world.cluster
  await primary.kill(signal)
  await delay(chance.between(0, 3_000))
  await primary.start()
}

async function fillDisk({ disk, cluster }: World, ms: number): Promise<void> {
  const file = join(disk!, 'filled')
  const { bavail, bsize } = statfsSync(disk!)
  try {
    execFileSync('fallocate', ['--length', String(bavail * bsize), file], { stdio: 'ignore' })
  } catch {
    // Another process took some of the remaining space, so the disk is full already.
  }
  await delay(ms)
  rmSync(file, { force: true })
  // A server shuts down when it has no space for its WAL.
  await cluster.primary.start()
}

/** Promotes the standby, and rebuilds the dead or unreachable old primary as the new standby. */
async function failOver({ cluster }: World, chance: Chance): Promise<void> {
  await delay(chance.between(0, 2_000))
  await cluster.promote()
  await delay(chance.between(0, 5_000))
  await cluster.attachStandby()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already exited.
  }
}
