import { type ChildProcess, fork } from 'node:child_process'
import { StartError } from '../../sql/start-error.ts'
import { START_REFUSED, SUPERVISED } from '../../tasks/supervised.ts'

/** One child process: a script that reports when it is ready, stops on SIGTERM, and calls `onParentGone`. */
export interface ChildSpec {
  /** Unique among the supervisor's children; names it in the log. */
  readonly name: string
  /** Absolute path of a `.ts` file. */
  readonly script: string
  /** On top of our own environment. */
  readonly env: Readonly<Record<string, string>>
  /** How long it may take to stop before SIGKILL. */
  readonly stopTimeoutMs: number
}

export interface Supervisor {
  /**
   * Starts a child and keeps it running: one that dies unasked is started again (see `restartDelay`), unless none of its
   * processes was ready yet and this one's status is START_REFUSED.
   */
  start(spec: ChildSpec): void
  /**
   * Resolves with the message `{ ready: true, … }` that the child sends (`process.send`); after a restart, with the
   * next one's. Keeps waiting through restarts.
   *
   * @throws when the child is not started again (StartError), or the supervisor stops first.
   */
  ready(name: string): Promise<unknown>
  /** Stops the children, all at once: SIGTERM, then `stopTimeoutMs`. Safe to call twice. */
  stop(): Promise<void>
  /** SIGKILL, at once. The child is started again like any that dies unasked, unless the supervisor is stopping. */
  kill(name: string): void
}

export interface SupervisorOptions {
  readonly log: (level: 'info' | 'warn' | 'error', data: object, message: string) => void
  /** A child that lived this long was healthy: its next death counts as the first. Default 10,000. */
  readonly healthyMs?: number
}

interface Child {
  readonly spec: ChildSpec
  process: ChildProcess | undefined
  /** Resolves when `process` has ended. */
  ended: Promise<void>
  startedAt: number
  /** Deaths in a row, each after less than `healthyMs`. */
  deaths: number
  restart: NodeJS.Timeout | undefined
  readiness: PromiseWithResolvers<unknown>
  isReady: boolean
  /** Whether any of its processes was ready. */
  wasReady: boolean
}

/** How long to wait after the nth death in a row: nothing at first, then 250 ms doubling up to 10 s. */
export function restartDelay(deaths: number): number {
  return deaths <= 1 ? 0 : Math.min(10_000, 250 * 2 ** (deaths - 2))
}

/**
 * Runs child processes under Node itself, with our own loader flags. Each child leads a session of its own, so that
 * Ctrl-C in the terminal, which signals the whole foreground group, reaches only us: we decide the order.
 */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { log, healthyMs = 10_000 } = options
  const children = new Map<string, Child>()
  let stopped: Promise<void> | undefined

  const onEnd = (child: Child, code: number | null, signal: NodeJS.Signals | null) => {
    if (stopped !== undefined) return
    if (code === START_REFUSED && !child.wasReady)
      return child.readiness.reject(new StartError(`${child.spec.name} can't start: it says why above`))
    if (child.isReady) Object.assign(child, awaitReadiness())
    child.deaths = performance.now() - child.startedAt >= healthyMs ? 1 : child.deaths + 1
    const waitMs = restartDelay(child.deaths)
    log('error', { child: child.spec.name, code, signal, waitMs }, 'Child process died; starting it again')
    child.restart = setTimeout(() => {
      try {
        launch(child, log, onEnd)
      } catch (error) {
        // A system short of memory or handles refuses a process outright; it may have some later.
        log('error', { child: child.spec.name, error: (error as Error).message }, 'Child process failed')
        onEnd(child, null, null)
      }
    }, waitMs)
  }
  const named = (name: string) => {
    const child = children.get(name)
    if (!child) throw new Error(`No child named ${name}`)
    return child
  }
  return {
    start: (spec) => {
      if (stopped !== undefined || children.has(spec.name))
        throw new Error(`The child ${spec.name} can't be started`)
      const child: Child = {
        spec,
        process: undefined,
        ended: Promise.resolve(),
        startedAt: 0,
        deaths: 0,
        wasReady: false,
        restart: undefined,
        ...awaitReadiness(),
      }
      children.set(spec.name, child)
      launch(child, log, onEnd)
    },
    ready: (name) => named(name).readiness.promise,
    stop: () => {
      stopped ??= stopAll([...children.values()], log)
      return stopped
    },
    kill: (name) => killGroup(named(name).process),
  }
}

type OnEnd = (child: Child, code: number | null, signal: NodeJS.Signals | null) => void

function launch(child: Child, log: SupervisorOptions['log'], onEnd: OnEnd): void {
  const { name, script, env } = child.spec
  Object.assign(child, { startedAt: performance.now(), restart: undefined })
  const started = fork(script, [], {
    execArgv: childFlags(process.execArgv),
    env: { ...process.env, ...env, [SUPERVISED]: '1' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = (code: number | null, signal: NodeJS.Signals | null) => {
    resolve()
    onEnd(child, code, signal)
  }
  started.once('exit', end)
  started.on('error', (error) => {
    log('error', { child: name, error: error.message }, 'Child process failed')
    if (started.pid === undefined) end(null, null) // It never ran, so no exit will come.
  })
  started.on('message', (message) => {
    if (child.isReady || (message as { ready?: unknown } | null)?.ready !== true) return
    child.isReady = true
    child.wasReady = true
    child.readiness.resolve(message)
  })
  Object.assign(child, { process: started, ended: promise })
  log('info', { child: name, pid: started.pid }, 'Child process started')
}

/** Our own flags, which a child needs to find its modules, without those that only one process can have. */
export function childFlags(own: readonly string[]): string[] {
  const quiet = '--disable-warning=ExperimentalWarning' // Node warns on every start that it strips types.
  return [quiet, ...own.filter((flag) => flag !== quiet && !/^--(inspect|test|watch)/.test(flag))]
}

function awaitReadiness(): Pick<Child, 'readiness' | 'isReady'> {
  const readiness = Promise.withResolvers<unknown>()
  readiness.promise.catch(() => {}) // A rejection that nobody waits for is no failure.
  return { readiness, isReady: false }
}

async function stopAll(children: readonly Child[], log: SupervisorOptions['log']): Promise<void> {
  for (const child of children) {
    clearTimeout(child.restart)
    child.readiness.reject(new Error(`The child ${child.spec.name} was stopped before it was ready`))
  }
  // Together: a worker that still ran would take the jobs that another gives back.
  await Promise.all(children.map((child) => stopOne(child, log)))
}

async function stopOne(child: Child, log: SupervisorOptions['log']): Promise<void> {
  const { name, stopTimeoutMs } = child.spec
  child.process?.kill('SIGTERM')
  const timer = setTimeout(() => {
    log('warn', { child: name, stopTimeoutMs }, 'Child process did not stop in time; killing it')
    killGroup(child.process)
  }, stopTimeoutMs)
  await child.ended
  clearTimeout(timer)
}

/** Ends a child together with the processes that it started. */
function killGroup(child: ChildProcess | undefined): void {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}
