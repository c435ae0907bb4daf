import { type ChildProcess, fork } from 'node:child_process'
import { ALONE_FROM_DEATHS } from '../../sql/jobs/jobs.ts'
import type { KeyMaterial } from '../../tasks/platform/keys.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { FinishedSpan } from '../../tasks/platform/telemetry/tracing.ts'
import type { PoolName } from '../../tasks/task.ts'
import { poolJobLogFields } from '../attempts/telemetry.ts'
import type { PoolsOptions } from '../threads/pools.ts'
import type { AbortReason, Outcome, PoolJob } from '../threads/protocol.ts'
import { sendMessage, watchEnd } from './child-process.ts'

/**
 * Runs suspects: jobs that were running when processes died. They share isolated processes, so that most of them soon
 * end. If a process dies, its jobs next run in smaller groups, and finally alone. A crash then proves that the job is the
 * cause.
 */
export interface IsolatedRunner {
  /**
   * Runs a job; never rejects. Releases it immediately if no process has room for it.
   *
   * @param onStarted called once a process has the job.
   */
  run(queue: string, pool: PoolName, job: PoolJob, onStarted?: () => void): Promise<Outcome>
  /** Aborts a job, as `Pools.abort` does. */
  abort(id: string, attempt: number, reason: AbortReason): void
  /** Kills all isolated processes. */
  close(): void
}

export interface IsolatedRunnerOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly taskModules: readonly string[]
  readonly keys?: KeyMaterial | undefined
  readonly log: Log
  readonly onEvent: PoolsOptions['onEvent']
  readonly onSpan?: PoolsOptions['onSpan']
}

/** A message to an isolated process. */
export type IsolatedCommand =
  | {
      readonly kind: 'settings'
      readonly setup: Pick<IsolatedRunnerOptions, 'settings' | 'databaseUrl' | 'taskModules' | 'keys'>
    }
  | { readonly kind: 'run'; readonly queue: string; readonly pool: PoolName; readonly job: PoolJob }
  | { readonly kind: 'abort'; readonly id: string; readonly attempt: number; readonly reason: AbortReason }

/** A message from an isolated process: the start of a job, then events and spans, finally the outcome. */
export type IsolatedReport =
  | { readonly kind: 'started'; readonly id: string; readonly attempt: number }
  | { readonly kind: 'event'; readonly event: Parameters<PoolsOptions['onEvent']>[0] }
  | { readonly kind: 'span'; readonly span: FinishedSpan }
  | { readonly kind: 'ended'; readonly id: string; readonly attempt: number; readonly outcome: Outcome }

interface RunningSuspect {
  readonly job: PoolJob
  readonly onStarted: (() => void) | undefined
  readonly settle: (outcome: Outcome) => void
  /** Maximum number of jobs in its process. */
  readonly groupSize: number
  hasStarted: boolean
  /** Null unless the job is aborted. */
  abortReason: AbortReason | null
}

interface Group {
  readonly process: ChildProcess
  /** The jobs in the process, by `keyOf`. */
  readonly members: Map<string, RunningSuspect>
  /** True once we kill the process, which proves nothing about its jobs. */
  isKilled: boolean
  /** Ends the process if it stays without a job. */
  idleTimer: NodeJS.Timeout | undefined
}

const ENTRY = new URL('./isolated-main.ts', import.meta.url)
// A process takes 100 MB or more.
const MAX_PROCESSES = 4
// With two, three and four interruptions, up to 512, 64 and 8 jobs share a process: three deaths find one job of 512.
const GROUP_FACTOR = 8
// Starting a process takes a second of CPU time, so an idle one is kept for the next job.
const IDLE_MS = 10_000
// Time in ms that an aborted job has to obey its signal before its process is killed. Must exceed the threads' grace
// period.
const KILL_DELAY_MS = 10_000
// Delay of a job whose process did not start, which limits the rate of restarts.
const RESTART_DELAY_MS = 1000
// Delay of a job for which no process has room.
const FULL_DELAY_MS = 2000

/** Creates the runner of suspects. Its processes start on demand. */
export function createIsolatedRunner(options: IsolatedRunnerOptions): IsolatedRunner {
  return new GroupRunner(options)
}

/** Returns how many jobs may share a process with a suspect. A job that fills a thread runs alone. */
const chooseGroupSize = ({ interruptions }: PoolJob, pool: PoolName): number =>
  pool === 'io' ? GROUP_FACTOR ** Math.max(0, ALONE_FROM_DEATHS - interruptions) : 1

const keyOf = ({ id, attempt }: { readonly id: string; readonly attempt: number }): string =>
  `${id}/${attempt}`

class GroupRunner implements IsolatedRunner {
  readonly #options: IsolatedRunnerOptions
  readonly #groups = new Set<Group>()

  constructor(options: IsolatedRunnerOptions) {
    this.#options = options
  }

  run(queue: string, pool: PoolName, job: PoolJob, onStarted?: () => void): Promise<Outcome> {
    const groupSize = chooseGroupSize(job, pool)
    const group = this.#findGroup(groupSize)
    if (group === null) return Promise.resolve({ kind: 'released', delayMs: FULL_DELAY_MS })
    clearTimeout(group.idleTimer)
    const { promise, resolve: settle } = Promise.withResolvers<Outcome>()
    group.members.set(keyOf(job), { job, onStarted, settle, groupSize, hasStarted: false, abortReason: null })
    send(group.process, { kind: 'run', queue, pool, job })
    return promise
  }

  abort(id: string, attempt: number, reason: AbortReason): void {
    const key = keyOf({ id, attempt })
    for (const group of this.#groups) {
      const member = group.members.get(key)
      if (member === undefined || member.abortReason !== null) continue
      member.abortReason = reason
      send(group.process, { kind: 'abort', id, attempt, reason })
      setTimeout(() => group.members.has(key) && this.#kill(group), KILL_DELAY_MS).unref()
    }
  }

  close(): void {
    for (const group of this.#groups) this.#kill(group)
  }

  /** Returns the fullest process that has room for another job, or a new one; null if there are too many. */
  #findGroup(groupSize: number): Group | null {
    let found: Group | null = null
    for (const group of this.#groups) {
      const sizes = [...group.members.values()].map((member) => member.groupSize)
      if (group.isKilled || group.members.size >= Math.min(groupSize, ...sizes)) continue
      if (found === null || group.members.size > found.members.size) found = group
    }
    return found ?? (this.#groups.size < MAX_PROCESSES ? this.#tryStart() : null)
  }

  /** Starts a process; returns null if the machine is short of something. */
  #tryStart(): Group | null {
    try {
      return this.#start()
    } catch (error) {
      this.#options.log.error({ err: error }, 'An isolated process did not start')
      return null
    }
  }

  #start(): Group {
    const { settings, databaseUrl, taskModules, keys, log } = this.#options
    const child = fork(ENTRY, [], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const group: Group = { process: child, members: new Map(), isKilled: false, idleTimer: undefined }
    this.#groups.add(group)
    child.on('message', (report: IsolatedReport) => this.#receive(group, report))
    watchEnd(
      child,
      (code, signal) => this.#endGroup(group, code, signal),
      (error) => log.error({ err: error }, 'An isolated process failed'),
    )
    send(child, { kind: 'settings', setup: { settings, databaseUrl, taskModules, keys } })
    return group
  }

  #receive(group: Group, report: IsolatedReport): void {
    const { onEvent, onSpan } = this.#options
    if (report.kind === 'event') onEvent(report.event)
    if (report.kind === 'span') onSpan?.(report.span)
    if (report.kind === 'event' || report.kind === 'span') return
    const member = group.members.get(keyOf(report))
    if (member === undefined) return
    if (report.kind === 'ended') this.#finish(group, member, report.outcome)
    else this.#begin(group, member)
  }

  #begin(group: Group, member: RunningSuspect): void {
    member.hasStarted = true
    member.onStarted?.()
    const { pid: isolatedPid } = group.process
    this.#options.log.warn(
      { ...poolJobLogFields(member.job), isolatedPid },
      'A suspect job runs in an isolated process',
    )
  }

  #finish(group: Group, member: RunningSuspect, outcome: Outcome): void {
    group.members.delete(keyOf(member.job))
    // A crash after an abort counts as the abort.
    const isAborted = outcome.kind === 'crashed' && member.abortReason !== null
    member.settle(isAborted ? { kind: 'aborted', reason: member.abortReason! } : outcome)
    if (group.members.size === 0) group.idleTimer = setTimeout(() => this.#kill(group), IDLE_MS).unref()
  }

  #endGroup(group: Group, code: number | null, signal: string | null): void {
    this.#groups.delete(group)
    const members = [...group.members.values()]
    const started = members.filter(({ hasStarted }) => hasStarted)
    for (const member of members) {
      const isSuspect = member.hasStarted && !group.isKilled
      if (isSuspect)
        this.#options.log.warn(
          { ...poolJobLogFields(member.job), code, signal },
          'The process of a suspect job died',
        )
      const host = started.length > 1 ? 'group' : 'isolated'
      const crashed = isSuspect || member.abortReason !== null
      this.#finish(
        group,
        member,
        crashed ? { kind: 'crashed', host } : { kind: 'released', delayMs: RESTART_DELAY_MS },
      )
    }
    clearTimeout(group.idleTimer)
  }

  #kill(group: Group): void {
    group.isKilled = true
    group.process.kill('SIGKILL')
  }
}

const send: (child: ChildProcess, command: IsolatedCommand) => void = sendMessage
