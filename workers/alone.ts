import { type ChildProcess, fork } from 'node:child_process'
import { createRoom } from '../sql/room.ts'
import type { Log } from '../tasks/log.ts'
import type { Settings } from '../tasks/settings.ts'
import type { PoolName } from '../tasks/task.ts'
import type { PoolJob, PoolsOptions } from './pools.ts'
import type { AbortReason, Outcome } from './protocol.ts'

/**
 * Runs suspects: jobs under which processes have died before. Each has a process to itself, so that its death is known to be
 * its own and costs nobody else anything.
 */
export interface Alone {
  /** Runs a job; always resolves. */
  run(queue: string, pool: PoolName, job: PoolJob): Promise<Outcome>
  /** Tells the process to stop the job, as `Pools` tells a thread. */
  abort(id: string, attempt: number, reason: AbortReason): void
  /** Ends the process that there is. */
  close(): void
}

export interface AloneOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly taskModules: readonly string[]
  readonly log: Log
  readonly onEvent: PoolsOptions['onEvent']
}

/** What the process is told: first what to run, then perhaps to stop it. */
export type AloneMessage =
  | {
      readonly kind: 'run'
      readonly settings: Settings
      readonly databaseUrl: string
      readonly taskModules: readonly string[]
      readonly queue: string
      readonly pool: PoolName
      readonly job: PoolJob
    }
  | { readonly kind: 'abort'; readonly reason: AbortReason }

/** What it answers: that it has come to the job, what that says, and at last how it ended. */
export type AloneAnswer =
  | { readonly kind: 'begun' }
  | { readonly kind: 'event'; readonly event: Parameters<PoolsOptions['onEvent']>[0] }
  | { readonly kind: 'ended'; readonly outcome: Outcome }

interface Running {
  readonly job: PoolJob
  process: ChildProcess | null
  aborted: AbortReason | null
}

const ENTRY = new URL('./alone-main.ts', import.meta.url)
// A process takes 100 MB and more.
const AT_ONCE = 4
// Longer than its threads have to follow the signal: a process that does not answer is killed.
const KILL_MS = 10_000
const RESTART_MS = 1000
const NOT_BEGUN: Outcome = { kind: 'aborted', reason: 'stopping' }

export function createAlone({ settings, databaseUrl, taskModules, log, onEvent }: AloneOptions): Alone {
  const room = createRoom(AT_ONCE)
  const running = new Set<Running>()

  const start = (mine: Running, queue: string, pool: PoolName): Promise<Outcome> => {
    const { job } = mine
    const child = fork(ENTRY, [], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    mine.process = child
    let begun = false
    const ended = new Promise<Outcome>((resolve) => {
      child.on('message', (answer: AloneAnswer) => {
        if (answer.kind === 'begun') {
          begun = true
          const { id: jobId, attempt } = job
          log.warn(
            { jobId, attempt, alonePid: child.pid },
            'A job under which processes have died runs alone',
          )
        } else if (answer.kind === 'event') onEvent(answer.event)
        else resolve(answer.outcome)
      })
      // By then all that it has said is here, too.
      child.on('close', (code, signal) => {
        log.warn({ jobId: job.id, code, signal }, 'The process of a job that ran alone has ended')
        if (begun) return resolve({ kind: 'crashed', among: 'nobody' })
        // No doing of the job's: it goes back, and nobody tries that at full speed.
        setTimeout(resolve, RESTART_MS, NOT_BEGUN)
      })
      child.on('error', (error) => log.error({ err: error, jobId: job.id }, 'A process for a job failed'))
    })
    const what: AloneMessage = { kind: 'run', settings, databaseUrl, taskModules, queue, pool, job }
    child.send(what, () => {})
    return ended
  }

  const run = async (mine: Running, queue: string, pool: PoolName): Promise<Outcome> => {
    if (mine.aborted !== null) return { kind: 'aborted', reason: mine.aborted }
    const outcome = await start(mine, queue, pool)
    mine.process?.kill('SIGKILL')
    // Whatever its death looks like, the abort is why it ended.
    return outcome.kind === 'crashed' && mine.aborted !== null
      ? { kind: 'aborted', reason: mine.aborted }
      : outcome
  }

  return {
    run: (queue, pool, job) => {
      const mine: Running = { job, process: null, aborted: null }
      running.add(mine)
      return room.enter(() => run(mine, queue, pool)).finally(() => running.delete(mine))
    },
    abort: (id, attempt, reason) => {
      for (const mine of running) {
        if (mine.job.id !== id || mine.job.attempt !== attempt || mine.aborted !== null) continue
        mine.aborted = reason
        const { process } = mine
        if (process === null) continue
        process.send({ kind: 'abort', reason } satisfies AloneMessage, () => {})
        const kill = setTimeout(() => process.kill('SIGKILL'), KILL_MS)
        process.once('close', () => clearTimeout(kill))
      }
    },
    close: () => {
      for (const { process } of running) process?.kill('SIGKILL')
    },
  }
}
