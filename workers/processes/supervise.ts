import { type ChildProcess, fork } from 'node:child_process'
import { StartError } from '../../sql/server/start-error.ts'
import { START_REFUSED_STATUS, SUPERVISED_VARIABLE } from '../../tasks/platform/supervised.ts'
import { watchEnd } from './child-process.ts'

/** A child process. Its script reports when it is ready, stops on SIGTERM, and calls `onParentGone`. */
export interface ChildSpec {
  /** Unique name among the supervisor's children, used in the log. */
  readonly name: string
  /** Absolute path of a `.ts` file. */
  readonly script: string
  /** Variables added to the environment of this process. */
  readonly env: Readonly<Record<string, string>>
  /** Time between SIGTERM and SIGKILL. */
  readonly stopTimeoutMs: number
}

export interface Supervisor {
  /**
   * Starts a child and restarts it whenever it dies, see `computeRestartDelay`. A child that exits with START_REFUSED_STATUS before
   * it was ever ready is not restarted.
   */
  start(spec: ChildSpec): void
  /**
   * Resolves with the message `{ ready: true, … }` that the child sends with `process.send`. Waits through restarts.
   *
   * @throws StartError if the child is not restarted, another error if the supervisor stops first.
   */
  ready(name: string): Promise<unknown>
  /** Stops all children together: SIGTERM, then SIGKILL after `stopTimeoutMs`. Safe to call twice. */
  stop(): Promise<void>
  /**
   * Stops a child as `stop` does, starts it immediately, and resolves once it is ready. Another restart may begin
   * meanwhile.
   *
   * @throws if the supervisor stops first.
   */
  restart(name: string): Promise<unknown>
  /** Sends SIGKILL. The child is restarted, unless the supervisor is stopping. */
  kill(name: string): void
}

export interface SupervisorOptions {
  readonly log: (level: 'info' | 'warn' | 'error', data: object, message: string) => void
  /** Lifetime of a healthy child, in ms. A death after this time counts as the first. Default 10,000. */
  readonly healthyMs?: number
  /**
   * True if a child that was ready once and then fails to start waits for `restart`. Its code is broken until a
   * developer fixes it.
   */
  readonly awaitsFixes?: boolean
}

interface Child {
  readonly spec: ChildSpec
  process: ChildProcess | undefined
  /** Resolves once `process` has exited. */
  ended: Promise<void>
  startedAt: number
  /** Consecutive deaths, each after less than `healthyMs`. */
  deaths: number
  restart: NodeJS.Timeout | undefined
  readiness: PromiseWithResolvers<unknown>
  isReady: boolean
  /** True if any process of this child was ever ready. */
  wasReady: boolean
  /** True while `restart` stops its process. */
  isStopping: boolean
}

/** Returns the restart delay in ms after consecutive deaths: 0 after the first, then 250 ms doubling up to 10 s. */
export function computeRestartDelay(deaths: number): number {
  return deaths <= 1 ? 0 : Math.min(10_000, 250 * 2 ** (deaths - 2))
}

/**
 * Runs child processes with this process's Node flags. Each child leads its own session. Ctrl-C therefore reaches only
 * this process, which decides the order of the shutdown.
 */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { log, healthyMs = 10_000, awaitsFixes = false } = options
  const children = new Map<string, Child>()
  let stopped: Promise<void> | undefined

  const onExit = (child: Child, code: number | null, signal: NodeJS.Signals | null) => {
    if (stopped !== undefined || child.isStopping) return
    if (code === START_REFUSED_STATUS && !child.wasReady)
      return child.readiness.reject(new StartError(`${child.spec.name} can't start; see its error above`))
    if (awaitsFixes && child.wasReady && !child.isReady) {
      log('error', { child: child.spec.name, code, signal }, 'The start failed; the next change repeats it')
      return
    }
    if (child.isReady) Object.assign(child, createReadiness())
    child.deaths = performance.now() - child.startedAt >= healthyMs ? 1 : child.deaths + 1
    const waitMs = computeRestartDelay(child.deaths)
    log('error', { child: child.spec.name, code, signal, waitMs }, 'Child process died; restarting it')
    child.restart = setTimeout(() => {
      try {
        launch(child, log, onExit)
      } catch (error) {
        // A system short of memory or file handles refuses to start a process; retry later.
        log('error', { child: child.spec.name, error: (error as Error).message }, 'Child process failed')
        onExit(child, null, null)
      }
    }, waitMs)
  }
  const findChild = (name: string) => {
    const child = children.get(name)
    if (!child) throw new Error(`No child named ${name}`)
    return child
  }
  return {
    start: (spec) => {
      if (stopped !== undefined) throw new Error(`Can't start ${spec.name}: the supervisor is stopping`)
      if (children.has(spec.name)) throw new Error(`Child ${spec.name} already exists`)
      const child = createChild(spec)
      children.set(spec.name, child)
      launch(child, log, onExit)
    },
    ready: (name) => findChild(name).readiness.promise,
    stop: () => {
      stopped ??= stopChildren([...children.values()], log)
      return stopped
    },
    restart: (name) => {
      const child = findChild(name)
      const start = () => stopped === undefined && launch(child, log, onExit)
      return restartChild(child, start, log)
    },
    kill: (name) => killGroup(findChild(name).process),
  }
}

const createChild = (spec: ChildSpec): Child => ({
  spec,
  process: undefined,
  ended: Promise.resolve(),
  startedAt: 0,
  deaths: 0,
  wasReady: false,
  isStopping: false,
  restart: undefined,
  ...createReadiness(),
})

type OnExit = (child: Child, code: number | null, signal: NodeJS.Signals | null) => void

function launch(child: Child, log: SupervisorOptions['log'], onExit: OnExit): void {
  const { name, script, env } = child.spec
  Object.assign(child, { startedAt: performance.now(), restart: undefined })
  const childProcess = fork(script, [], {
    execArgv: selectChildFlags(process.execArgv),
    env: { ...process.env, ...env, [SUPERVISED_VARIABLE]: '1' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  const finish = (code: number | null, signal: NodeJS.Signals | null) => {
    resolve()
    onExit(child, code, signal)
  }
  watchEnd(childProcess, finish, (error) =>
    log('error', { child: name, error: error.message }, 'Child process failed'),
  )
  childProcess.on('message', (message) => {
    if (child.isReady || child.isStopping || (message as { ready?: unknown } | null)?.ready !== true) return
    child.isReady = true
    child.wasReady = true
    child.readiness.resolve(message)
  })
  Object.assign(child, { process: childProcess, ended: promise })
  log('info', { child: name, pid: childProcess.pid }, 'Child process started')
}

/**
 * Returns the Node flags for a child: this process's flags, except those that only one process can have, such as
 * `--inspect`.
 */
export function selectChildFlags(flags: readonly string[]): string[] {
  const quiet = '--disable-warning=ExperimentalWarning' // Hides Node's warning about type stripping.
  return [quiet, ...flags.filter((flag) => flag !== quiet && !/^--(inspect|test|watch)/.test(flag))]
}

function createReadiness(): Pick<Child, 'readiness' | 'isReady'> {
  const readiness = Promise.withResolvers<unknown>()
  readiness.promise.catch(() => {}) // If nothing awaits the promise, its rejection must not end the process.
  return { readiness, isReady: false }
}

async function stopChildren(children: readonly Child[], log: SupervisorOptions['log']): Promise<void> {
  for (const child of children) {
    clearTimeout(child.restart)
    child.readiness.reject(new Error(`Child ${child.spec.name} was stopped before it was ready`))
  }
  // Stop all together: a worker that still runs would claim the jobs that another releases.
  await Promise.all(children.map((child) => stopChild(child, log)))
}

/** Stops the process of a child, starts another, and resolves once it is ready. */
async function restartChild(
  child: Child,
  start: () => void,
  log: SupervisorOptions['log'],
): Promise<unknown> {
  clearTimeout(child.restart)
  // An earlier restart is stopping the process, and then starts the next one.
  if (!child.isStopping) {
    child.isStopping = true
    if (child.isReady) Object.assign(child, createReadiness())
    await stopChild(child, log)
    Object.assign(child, { isStopping: false, deaths: 0 })
    start()
  }
  return child.readiness.promise
}

async function stopChild(child: Child, log: SupervisorOptions['log']): Promise<void> {
  const { name, stopTimeoutMs } = child.spec
  child.process?.kill('SIGTERM')
  const timer = setTimeout(() => {
    log('warn', { child: name, stopTimeoutMs }, 'Child process did not stop in time; killing it')
    killGroup(child.process)
  }, stopTimeoutMs)
  await child.ended
  clearTimeout(timer)
}

/** Kills a child together with the processes that it started. */
function killGroup(child: ChildProcess | undefined): void {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}
