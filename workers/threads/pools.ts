import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { BroadcastChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Claimed } from '../../sql/jobs/claims.ts'
import type { Log } from '../../tasks/log.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { PoolName } from '../../tasks/task.ts'
import { serveChildren } from '../children/client.ts'
import type { Children } from '../children/ports.ts'
import type {
  AbortCommand,
  AbortReason,
  ChildrenPort,
  Outcome,
  ThreadData,
  ThreadReport,
  Trip,
} from './protocol.ts'

/**
 * The thread pools of a worker process, by queue group and nature of the work, so that a flood in one group never
 * takes the threads of another. A pool is made at its first job.
 */
export interface Pools {
  /** Runs a job on a thread; always resolves. Jobs handed over in one turn share a trip to their thread. */
  run(queue: string, pool: PoolName, job: PoolJob): Promise<Outcome>
  /** Tells the thread to stop the job; one that has not within the grace period dies with its thread. */
  abort(id: string, attempt: number, reason: AbortReason): void
  readonly threads: number
  close(): Promise<void>
}

export type PoolJob = Pick<Claimed, 'id' | 'attempt' | 'name' | 'payload' | 'owner_id' | 'request_id'>

export interface PoolsOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly children: Children
  readonly log: Log
  readonly onEvent: (event: { id: string; attempt: number; n: number; kind: string; data: unknown }) => void
  /** How long a job may take to follow its abort signal, in ms. */
  readonly killGraceMs?: number
  /** Modules with more tasks, see `loadTasks`. */
  readonly taskModules?: readonly string[]
}

interface Running {
  /** A number that only this attempt has in its process. */
  readonly ticket: number
  readonly job: PoolJob
  readonly settle: (outcome: Outcome) => void
  readonly home: Waiting
  /** How many threads of its pool had been killed when it was handed over. */
  readonly kills: number
  threadId: number | null
  abort: { reason: AbortReason; kill: NodeJS.Timeout } | null
}

interface Waiting {
  readonly pool: Piscina
  readonly perTrip: number
  readonly perThread: number
  /** Its thread is never killed: the model's runtime can't be loaded in one process again. */
  readonly lasting: boolean
  readonly jobs: Running[]
  kills: number
  /** Threads lost since one last said something. */
  lost: number
}

// Each trip wakes both sides.
const MOST_PER_TRIP = 256
const RESTART_MS = 50
const MOST_RESTART_MS = 5000
// Threads wait for I/O most of the time, so few carry many jobs; the bound on them is the runner's.
const IO_THREADS = 2
const IO_TRIPS_PER_THREAD = 1024
// What these wait for computes elsewhere: one thread has them all.
const CHILDREN_THREADS = 1
// Bounds what a task can take; the pool replaces a thread that passes it.
const CPU_HEAP_MB = 384

export function createPools(options: PoolsOptions): Pools {
  const channelName = `millrace-${randomUUID()}`
  const channel = new BroadcastChannel(channelName)
  const pools = new Map<string, Waiting>()
  const running = new Map<number, Running>()
  const killed = new Set<number>()
  // Threads that have died with several jobs in them.
  const crowded = new Set<number>()
  const notStarted = new Map<number, readonly number[]>()
  let lastTicket = 0
  let lastTrip = 0
  let scheduled = false
  let closed = false

  const poolOf = (queue: string, name: PoolName): Waiting => {
    const key = `${queue}/${name}`
    const known = pools.get(key)
    if (known !== undefined) return known
    const made: Waiting = {
      pool: makePool(options, name, channelName),
      perTrip: name === 'io' ? MOST_PER_TRIP : 1,
      perThread: jobsPerThread(options.settings, name),
      lasting: name === 'model',
      jobs: [],
      kills: 0,
      lost: 0,
    }
    made.pool.on('message', (message: ThreadReport | ChildrenPort) => {
      made.lost = 0
      if ('port' in message) serveChildren(options.children, message.port)
      else onReport(message)
    })
    made.pool.on('workerDestroy', () => replaceLost(made))
    made.pool.on('error', (error) => options.log.error({ err: error, pool: key }, 'A task thread failed'))
    pools.set(key, made)
    return made
  }

  // A pool that has lost its last thread, or one that was still loading, starts another only when it is given something.
  const replaceLost = (waiting: Waiting): void => {
    const nudge = (): void => {
      if (!closed && waiting.pool.queueSize > 0)
        waiting.pool.run({ id: 0, jobs: '[]' } satisfies Trip).catch(() => {})
    }
    // One that can't load at all is not tried again and again at full speed.
    setTimeout(nudge, Math.min(RESTART_MS * 2 ** waiting.lost++ - RESTART_MS, MOST_RESTART_MS)).unref()
  }

  const onReport = ({ threadId, entries, tickets, results }: ThreadReport): void => {
    for (const entry of entries) {
      if (entry.kind === 'log') {
        options.log[entry.level](entry.data, entry.message)
        continue
      }
      if (entry.kind === 'started') {
        for (const ticket of notStarted.get(entry.trip) ?? []) onStarted(ticket, threadId)
        notStarted.delete(entry.trip)
        continue
      }
      const found = running.get(entry.ticket)
      if (found === undefined) continue
      const { id, attempt } = found.job
      if (entry.kind === 'ended') end(found, entry.outcome)
      else options.onEvent({ id, attempt, n: entry.n, kind: entry.event, data: entry.data })
    }
    for (const [i, ticket] of tickets.entries()) {
      const found = running.get(ticket)
      if (found !== undefined) end(found, { kind: 'done', result: results[i]! })
    }
  }

  const onStarted = (ticket: number, threadId: number): void => {
    const found = running.get(ticket)
    if (found === undefined) return
    found.threadId = threadId
    if (found.abort === null) return
    // Its thread was not there yet to hear the signal, and has its grace period from now on.
    channel.postMessage({ ticket, reason: found.abort.reason } satisfies AbortCommand)
    found.abort.kill.refresh()
  }

  const end = (found: Running, outcome: Outcome): void => {
    if (!running.delete(found.ticket)) return
    clearTimeout(found.abort?.kill)
    // Whatever the death of an aborted job looks like, the abort is why it ended.
    found.settle(
      outcome.kind === 'crashed' && found.abort ? { kind: 'aborted', reason: found.abort.reason } : outcome,
    )
  }

  const dispatch = (): void => {
    scheduled = false
    for (const waiting of pools.values()) {
      for (const jobs of trips(waiting)) {
        const id = ++lastTrip
        // Not the jobs: they would be kept for a second after their ends, 40 MB of them at full speed.
        const tickets = jobs.map(({ ticket }) => ticket)
        notStarted.set(id, tickets)
        waiting.pool.run({ id, jobs: textOf(jobs) } satisfies Trip).then(
          // Piscina's answer and the thread's own reports come by different ports: give the reports their turn.
          () => setTimeout(() => settleLeftOver(id, tickets), 1000).unref(),
          () => {
            settleLeftOver(id, tickets)
          },
        )
      }
    }
  }

  const settleLeftOver = (id: number, tickets: readonly number[]): void => {
    notStarted.delete(id)
    for (const ticket of tickets) {
      const found = running.get(ticket)
      if (found === undefined) continue
      // Its thread was killed because of another job in it, maybe before it came to this one: not its failure.
      const killedUnder =
        found.threadId === null ? found.home.kills > found.kills : killed.has(found.threadId)
      const bystander = killedUnder && found.abort === null
      if (bystander) end(found, { kind: 'aborted', reason: 'stopping' })
      else end(found, isShared(found) ? { kind: 'crashed', among: 'others' } : { kind: 'crashed' })
    }
  }

  // The others may be told of their end before: who was there then counts.
  const isShared = ({ home, threadId }: Running): boolean =>
    home.perThread > 1 && threadId !== null && (crowded.has(threadId) || crowd(home, threadId))

  const crowd = (home: Waiting, threadId: number): boolean => {
    const inside = [...running.values()].filter((one) => one.home === home && one.threadId === threadId)
    if (inside.length > 1) crowded.add(threadId)
    return inside.length > 1
  }

  return {
    run: (queue, name, job) =>
      new Promise((settle) => {
        const home = poolOf(queue, name)
        const given = {
          ticket: ++lastTicket,
          job,
          settle,
          home,
          kills: home.kills,
          threadId: null,
          abort: null,
        }
        running.set(given.ticket, given)
        home.jobs.push(given)
        if (!scheduled) {
          scheduled = true
          setImmediate(dispatch)
        }
      }),
    abort: (id, attempt, reason) => {
      // Seldom enough to look for it, where the way of every job needs no text to be put together.
      const found = [...running.values()].find(({ job }) => job.id === id && job.attempt === attempt)
      if (found === undefined || found.abort !== null) return
      channel.postMessage({ ticket: found.ticket, reason } satisfies AbortCommand)
      const kill = setTimeout(() => {
        if (found.threadId === null || found.home.lasting) return
        killed.add(found.threadId)
        found.home.kills++
        killThread(found, options.log)
      }, options.killGraceMs ?? 2000)
      found.abort = { reason, kill }
    },
    get threads() {
      return [...pools.values()].reduce((sum, { pool }) => sum + pool.threads.length, 0)
    },
    close: async () => {
      closed = true
      await Promise.all([...pools.values()].map(({ pool }) => pool.destroy()))
      channel.close()
    },
  }
}

/** Cuts what waits into trips, spread over the pool's threads. */
function* trips({ pool, jobs, perTrip }: Waiting): Generator<Running[]> {
  const waiting = jobs.splice(0)
  const size = Math.min(perTrip, Math.ceil(waiting.length / pool.options.maxThreads))
  for (let start = 0; start < waiting.length; start += size) yield waiting.slice(start, start + size)
}

/** JSON text of `ThreadJob`s: a payload is put into it as it is. */
function textOf(jobs: readonly Running[]): string {
  const texts = jobs.map(({ ticket, job }) => {
    const { id, attempt, name, owner_id: ownerId, request_id: requestId } = job
    const rest = JSON.stringify({ ticket, id, attempt, name, ownerId, requestId })
    return `${rest.slice(0, -1)},"payload":${job.payload}}`
  })
  return `[${texts.join()}]`
}

function killThread({ job, home, threadId }: Running, log: Log): void {
  const thread = home.pool.threads.find((candidate) => candidate.threadId === threadId)
  log.warn({ jobId: job.id, task: job.name }, 'A job did not follow its abort signal; its thread is killed')
  void thread?.terminate()
}

function threadsOf({ workerThreads }: Settings, name: PoolName): number {
  if (name === 'io') return Math.min(workerThreads, IO_THREADS)
  // One more than there are slots, as in `Slots`: for an owner who has none.
  if (name === 'cpu') return Math.min(workerThreads, availableParallelism()) + 1
  return name === 'children' ? CHILDREN_THREADS : 1
}

/** How many trips, of one job or many, a thread has at once. */
function jobsPerThread(settings: Settings, name: PoolName): number {
  if (name === 'io') return IO_TRIPS_PER_THREAD
  return name === 'children' ? settings.workerThreads + 1 : 1
}

function makePool(
  { settings, databaseUrl, taskModules = [] }: PoolsOptions,
  name: PoolName,
  channel: string,
): Piscina {
  const threads = threadsOf(settings, name)
  return new Piscina({
    filename: new URL('./thread-main.ts', import.meta.url).href,
    minThreads: name === 'io' ? 1 : 0,
    maxThreads: threads,
    concurrentTasksPerWorker: jobsPerThread(settings, name),
    idleTimeout: name === 'model' ? Number.POSITIVE_INFINITY : 60_000,
    closeTimeout: 1000,
    // Any other mode stops the thread's event loop between tasks, and with it its database connections.
    atomics: 'disabled',
    workerData: {
      settings,
      databaseUrl,
      channel,
      pool: name,
      taskModules,
    } satisfies ThreadData,
    ...(name === 'cpu' ? { resourceLimits: { maxOldGenerationSizeMb: CPU_HEAP_MB } } : {}),
  })
}
