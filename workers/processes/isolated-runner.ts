import { type ChildProcess, fork } from 'node:child_process'
import { createSemaphore } from '../../sql/semaphore.ts'
import type { Log } from '../../tasks/log.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { PoolName } from '../../tasks/task.ts'
import type { FinishedSpan } from '../../tasks/telemetry/tracing.ts'
import { poolJobLogFields } from '../attempts/telemetry.ts'
import type { PoolsOptions } from '../threads/pools.ts'
import type { AbortReason, Outcome, PoolJob } from '../threads/protocol.ts'

/**
 * Runs suspects: jobs that were running when processes died. Each has a process to itself, so a crash proves that the
 * job is the cause, and interrupts no other job.
 */
export interface IsolatedRunner {
  /** Runs a job; never rejects. @param onStarted called once a process has the job. */
  run(queue: string, pool: PoolName, job: PoolJob, onStarted?: () => void): Promise<Outcome>
  /** Aborts a job, as `Pools.abort` does. A job that still waits for a process finishes immediately. */
  abort(id: string, attempt: number, reason: AbortReason): void
  /** Kills all isolated processes. */
  close(): void
}

export interface IsolatedRunnerOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly taskModules: readonly string[]
  readonly log: Log
  readonly onEvent: PoolsOptions['onEvent']
  readonly onSpan?: PoolsOptions['onSpan']
}

/** A message to an isolated process. */
export type IsolatedCommand =
  | {
      readonly kind: 'settings'
      readonly setup: Pick<IsolatedRunnerOptions, 'settings' | 'databaseUrl' | 'taskModules'>
    }
  | { readonly kind: 'run'; readonly queue: string; readonly pool: PoolName; readonly job: PoolJob }
  | { readonly kind: 'abort'; readonly id: string; readonly attempt: number; readonly reason: AbortReason }

/** A message from an isolated process: the start of its job, then events and spans, finally the outcome. */
export type IsolatedReport =
  | { readonly kind: 'started' }
  | { readonly kind: 'event'; readonly event: Parameters<PoolsOptions['onEvent']>[0] }
  | { readonly kind: 'span'; readonly span: FinishedSpan }
  | { readonly kind: 'ended'; readonly outcome: Outcome }

interface RunningSuspect {
  readonly job: PoolJob
  readonly queue: string
  readonly pool: PoolName
  readonly onStarted: (() => void) | undefined
  readonly settle: (outcome: Outcome) => void
  /** Null until the job has a process. */
  process: ChildProcess | null
  /** Null unless the job is aborted. */
  abortReason: AbortReason | null
}

const ENTRY = new URL('./isolated-main.ts', import.meta.url)
// A process takes 100 MB or more.
const MAX_PROCESSES = 4
// Starting a process takes a second of CPU time, so an idle one is kept for the next job.
const IDLE_MS = 10_000
// Time in ms that an aborted job has to obey its signal before its process is killed. Must exceed the threads' grace
// period.
const KILL_DELAY_MS = 10_000
const RESTART_DELAY_MS = 1000
const NOT_STARTED_OUTCOME: Outcome = { kind: 'aborted', reason: 'stopping' }

/** Creates the runner of suspects. Its processes start on demand. */
export function createIsolatedRunner(options: IsolatedRunnerOptions): IsolatedRunner {
  return new ProcessRunner(options)
}

class ProcessRunner implements IsolatedRunner {
  readonly #options: IsolatedRunnerOptions
  readonly #semaphore = createSemaphore(MAX_PROCESSES)
  readonly #running = new Set<RunningSuspect>()
  readonly #idle = new Map<ChildProcess, NodeJS.Timeout>()

  constructor(options: IsolatedRunnerOptions) {
    this.#options = options
  }

  run(queue: string, pool: PoolName, job: PoolJob, onStarted?: () => void): Promise<Outcome> {
    const { promise, resolve: settle } = Promise.withResolvers<Outcome>()
    const running: RunningSuspect = { job, queue, pool, onStarted, settle, process: null, abortReason: null }
    this.#running.add(running)
    void this.#semaphore.run(() => this.#runNow(running)).then(settle)
    return promise.finally(() => this.#running.delete(running))
  }

  abort(id: string, attempt: number, reason: AbortReason): void {
    for (const running of this.#running) {
      const { job, process } = running
      if (job.id !== id || job.attempt !== attempt || running.abortReason !== null) continue
      running.abortReason = reason
      if (process === null) {
        running.settle({ kind: 'aborted', reason })
        continue
      }
      send(process, { kind: 'abort', id, attempt, reason })
      setTimeout(() => this.#running.has(running) && process.kill('SIGKILL'), KILL_DELAY_MS).unref()
    }
  }

  close(): void {
    for (const { process } of this.#running) process?.kill('SIGKILL')
    for (const child of [...this.#idle.keys()]) this.#retire(child)
  }

  async #runNow(running: RunningSuspect): Promise<Outcome> {
    if (running.abortReason !== null) return { kind: 'aborted', reason: running.abortReason }
    const child = this.#acquire()
    running.process = child
    const outcome = await this.#runIn(child, running)
    this.#release(child)
    // A crash after an abort counts as the abort.
    return outcome.kind === 'crashed' && running.abortReason !== null
      ? { kind: 'aborted', reason: running.abortReason }
      : outcome
  }

  /** Runs the job in a process; resolves with its outcome, even if the process dies. */
  #runIn(child: ChildProcess, { job, queue, pool, onStarted }: RunningSuspect): Promise<Outcome> {
    const { log, onEvent, onSpan } = this.#options
    return new Promise((resolve) => {
      let hasStarted = false
      const onMessage = (report: IsolatedReport): void => {
        if (report.kind === 'event') onEvent(report.event)
        else if (report.kind === 'span') onSpan?.(report.span)
        else if (report.kind === 'ended') finish(report.outcome)
        else {
          hasStarted = true
          onStarted?.()
          this.#logStart(job, child)
        }
      }
      // `close` comes after the last message.
      const onClose = (code: number | null, signal: string | null): void => {
        log.warn({ ...poolJobLogFields(job), code, signal }, 'The process of a suspect job died')
        if (hasStarted) finish({ kind: 'crashed', host: 'isolated' })
        else failStart()
      }
      // The job is not at fault: release it, but only after a pause, to limit the rate of restarts.
      const failStart = (): void => void setTimeout(finish, RESTART_DELAY_MS, NOT_STARTED_OUTCOME)
      const finish = (outcome: Outcome): void => {
        child.off('message', onMessage).off('close', onClose)
        resolve(outcome)
      }
      child.on('message', onMessage).on('close', onClose)
      // A process that failed to spawn emits no `close`.
      if (child.pid === undefined) failStart()
      else send(child, { kind: 'run', queue, pool, job })
    })
  }

  #logStart(job: PoolJob, { pid: isolatedPid }: ChildProcess): void {
    const { log } = this.#options
    log.warn({ ...poolJobLogFields(job), isolatedPid }, 'A suspect job runs in an isolated process')
  }

  #acquire(): ChildProcess {
    const [child] = this.#idle.keys()
    if (child === undefined) return this.#start()
    this.#removeIdle(child)
    return child
  }

  #release(child: ChildProcess): void {
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
    child.on('error', (error) => log.error({ err: error }, 'An isolated process failed'))
    child.on('close', () => this.#removeIdle(child))
    send(child, { kind: 'settings', setup: { settings, databaseUrl, taskModules } })
    return child
  }

  /** Kills an idle process, and removes it first so that it gets no job before it dies. */
  #retire(child: ChildProcess): void {
    this.#removeIdle(child)
    child.kill('SIGKILL')
  }

  /** Stops treating a process as idle because it gets a job or is dead. */
  #removeIdle(child: ChildProcess): void {
    clearTimeout(this.#idle.get(child))
    this.#idle.delete(child)
  }
}

// Ignores errors: a process that is gone emits `close`.
function send(child: ChildProcess, message: IsolatedCommand): void {
  child.send(message, () => {})
}
