import { type ChildProcess, fork } from 'node:child_process'
import { createSemaphore } from '../../sql/semaphore.ts'
import type { Log } from '../../tasks/log.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { PoolName } from '../../tasks/task.ts'
import type { FinishedSpan } from '../../tasks/telemetry/tracing.ts'
import { aboutPoolJob } from '../attempts/telemetry.ts'
import type { PoolsOptions } from '../threads/pools.ts'
import type { AbortReason, Outcome, PoolJob } from '../threads/protocol.ts'

/**
 * Runs suspects: jobs under which processes have died before. Each has a process to itself, so that a death is
 * certainly its own and costs no other job anything.
 */
export interface Alone {
  /** Runs a job; always resolves. @param onBegun called when a process has it: until then it waits for one. */
  run(queue: string, pool: PoolName, job: PoolJob, onBegun?: () => void): Promise<Outcome>
  /** Tells the process to stop the job, as `Pools` tells a thread; one that waits for a process ends at once. */
  abort(id: string, attempt: number, reason: AbortReason): void
  /** Kills all its processes. */
  close(): void
}

export interface AloneOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly taskModules: readonly string[]
  readonly log: Log
  readonly onEvent: PoolsOptions['onEvent']
  readonly onSpan?: PoolsOptions['onSpan']
}

/** A message to a process. */
export type AloneMessage =
  | {
      readonly kind: 'settings'
      readonly given: Pick<AloneOptions, 'settings' | 'databaseUrl' | 'taskModules'>
    }
  | { readonly kind: 'run'; readonly queue: string; readonly pool: PoolName; readonly job: PoolJob }
  | { readonly kind: 'abort'; readonly id: string; readonly attempt: number; readonly reason: AbortReason }

/** What a process answers about a job: that it has begun, its events and calls, and finally its outcome. */
export type AloneAnswer =
  | { readonly kind: 'begun' }
  | { readonly kind: 'event'; readonly event: Parameters<PoolsOptions['onEvent']>[0] }
  | { readonly kind: 'span'; readonly span: FinishedSpan }
  | { readonly kind: 'ended'; readonly outcome: Outcome }

interface Running {
  readonly job: PoolJob
  readonly queue: string
  readonly pool: PoolName
  readonly onBegun: (() => void) | undefined
  readonly settle: (outcome: Outcome) => void
  process: ChildProcess | null
  aborted: AbortReason | null
}

const ENTRY = new URL('./alone-main.ts', import.meta.url)
// A process takes 100 MB and more.
const AT_ONCE = 4
// Starting a process takes a second of CPU time: one that outlives its job takes others.
const IDLE_MS = 10_000
// Longer than its threads have to obey the signal: a process that does not answer by then is killed.
const KILL_MS = 10_000
const RESTART_MS = 1000
const NOT_BEGUN: Outcome = { kind: 'aborted', reason: 'stopping' }

/** Creates the runner of suspects; its processes start when they are needed. */
export function createAlone(options: AloneOptions): Alone {
  return new AloneRunner(options)
}

class AloneRunner implements Alone {
  readonly #options: AloneOptions
  readonly #semaphore = createSemaphore(AT_ONCE)
  readonly #running = new Set<Running>()
  readonly #idle = new Map<ChildProcess, NodeJS.Timeout>()

  constructor(options: AloneOptions) {
    this.#options = options
  }

  run(queue: string, pool: PoolName, job: PoolJob, onBegun?: () => void): Promise<Outcome> {
    const { promise, resolve: settle } = Promise.withResolvers<Outcome>()
    const mine: Running = { job, queue, pool, onBegun, settle, process: null, aborted: null }
    this.#running.add(mine)
    void this.#semaphore.run(() => this.#runNow(mine)).then(settle)
    return promise.finally(() => this.#running.delete(mine))
  }

  abort(id: string, attempt: number, reason: AbortReason): void {
    for (const mine of this.#running) {
      if (mine.job.id !== id || mine.job.attempt !== attempt || mine.aborted !== null) continue
      mine.aborted = reason
      const { process } = mine
      if (process === null) {
        mine.settle({ kind: 'aborted', reason })
        continue
      }
      send(process, { kind: 'abort', id, attempt, reason })
      setTimeout(() => this.#running.has(mine) && process.kill('SIGKILL'), KILL_MS).unref()
    }
  }

  close(): void {
    for (const { process } of this.#running) process?.kill('SIGKILL')
    for (const child of [...this.#idle.keys()]) this.#retire(child)
  }

  async #runNow(mine: Running): Promise<Outcome> {
    if (mine.aborted !== null) return { kind: 'aborted', reason: mine.aborted }
    const child = this.#acquire()
    mine.process = child
    const outcome = await this.#ask(child, mine)
    this.#giveBack(child)
    // However an aborted job died, the abort is why it ended.
    return outcome.kind === 'crashed' && mine.aborted !== null
      ? { kind: 'aborted', reason: mine.aborted }
      : outcome
  }

  /** Runs the job in a process; resolves with its outcome, even if the process dies. */
  #ask(child: ChildProcess, { job, queue, pool, onBegun }: Running): Promise<Outcome> {
    const { log, onEvent, onSpan } = this.#options
    return new Promise((resolve) => {
      let begun = false
      const onMessage = (answer: AloneAnswer): void => {
        if (answer.kind === 'event') onEvent(answer.event)
        else if (answer.kind === 'span') onSpan?.(answer.span)
        else if (answer.kind === 'ended') end(answer.outcome)
        else {
          begun = true
          onBegun?.()
          this.#logBegun(job, child)
        }
      }
      // On `close`, all its messages have arrived, too.
      const onClose = (code: number | null, signal: string | null): void => {
        log.warn({ ...aboutPoolJob(job), code, signal }, 'The process of a suspect job has ended')
        if (begun) end({ kind: 'crashed', among: 'nobody' })
        else notBegun()
      }
      // Not the job's fault: it is released, after a pause so that this is not retried at full speed.
      const notBegun = (): void => void setTimeout(end, RESTART_MS, NOT_BEGUN)
      const end = (outcome: Outcome): void => {
        child.off('message', onMessage).off('close', onClose)
        resolve(outcome)
      }
      child.on('message', onMessage).on('close', onClose)
      // A process that could not even be spawned does not report its end.
      if (child.pid === undefined) notBegun()
      else send(child, { kind: 'run', queue, pool, job })
    })
  }

  #logBegun(job: PoolJob, { pid: alonePid }: ChildProcess): void {
    const { log } = this.#options
    log.warn({ ...aboutPoolJob(job), alonePid }, 'A suspect job, under which processes have died, runs alone')
  }

  #acquire(): ChildProcess {
    const [child] = this.#idle.keys()
    if (child === undefined) return this.#start()
    this.#forget(child)
    return child
  }

  #giveBack(child: ChildProcess): void {
    if (!child.connected) return
    this.#idle.set(
      child,
      setTimeout(() => this.#retire(child), IDLE_MS),
    )
  }

  #start(): ChildProcess {
    const { settings, databaseUrl, taskModules, log } = this.#options
    const child = fork(ENTRY, [], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    child.on('error', (error) => log.error({ err: error }, 'A process for a job failed'))
    child.on('close', () => this.#forget(child))
    send(child, { kind: 'settings', given: { settings, databaseUrl, taskModules } })
    return child
  }

  /** Kills an idle process; it is forgotten before it dies, so that it is given no job meanwhile. */
  #retire(child: ChildProcess): void {
    this.#forget(child)
    child.kill('SIGKILL')
  }

  /** Removes a process that is no longer idle, or no longer exists. */
  #forget(child: ChildProcess): void {
    clearTimeout(this.#idle.get(child))
    this.#idle.delete(child)
  }
}

// Errors are ignored: a process that is gone emits `close`.
function send(child: ChildProcess, message: AloneMessage): void {
  child.send(message, () => {})
}
