import { type ChildProcess, spawn } from 'node:child_process'
import { fail, restoreFailure } from '../../sql/errors.ts'
import { openChildCacheFolder } from '../../tasks/platform/code-cache.ts'
import { readUsage, type Usage } from '../../tasks/platform/process-usage.ts'
import { sendMessage, watchEnd } from '../processes/child-process.ts'
import { ChildLost, type Limits, type LossReason } from './ports.ts'
import { createPermissionFlags, type Sandbox, type SandboxOptions } from './sandbox.ts'

/** A child process as the pool sees it. */
export interface Child {
  readonly pid: number
  /** Sends a request like `ChildLease.ask`, but of any kind. */
  ask(kind: string, request: unknown, limits: Limits): Promise<unknown>
  /** Kills the child if it exceeds a limit. @param now a time of `performance.now()`. */
  check(now: number): void
  kill(why?: LossReason): void
  /** True while a request is running. */
  readonly isBusy: boolean
  readonly isAlive: boolean
  /** Returns the child's usage; null if the platform doesn't report it, or the process is gone. */
  usage(): Usage | null
}

/** Messages of a child: the result of a request, or its progress. */
export type Message =
  /** Sent once, after the start: CPU time from now on counts as work. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly answer: unknown }
  /** The handler threw a `Failure`, whose text clients may see. */
  | { readonly kind: 'refused'; readonly code: string; readonly detail: string }
  /** The handler threw any other value. */
  | { readonly kind: 'failed'; readonly error: string }
  | { readonly kind: 'at'; readonly at: number }

/** Limits of a child for its whole life. */
export interface ChildLimits {
  /** V8's old space, in MiB. */
  readonly heapMb: number
  /** Resident memory in bytes, checked ten times a second. */
  readonly rssBytes: number
}

// Limit of writable memory, in KiB: makes a single large allocation fail in the child, even between two checks.
// RLIMIT_DATA does not count reserved address space, of which each WebAssembly memory takes 8 GiB.
const MAX_DATA_KB = 2 * 2 ** 20
// Limits that a process can only set for itself: no core dumps, RLIMIT_DATA, and first choice of the kernel's OOM killer.
// Where `sh` can't set them, only the checked limits apply.
const LIMIT_SCRIPT = `ulimit -c 0; ulimit -d ${MAX_DATA_KB}; { echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; exec "$@"`
// Part of stderr kept for the log: V8 writes the reason first, then its stack.
const MAX_STDERR_CHARACTERS = 3000
const OUT_OF_MEMORY_PATTERN =
  /heap out of memory|Allocation failed|allocation failed|out of memory|bad_alloc|result\.ptr|ERR_WORKER_OUT_OF_MEMORY/

// Returns an environment without the settings of the service, such as keys and the database URL.
const createChildEnv = (): NodeJS.ProcessEnv => {
  const allowed = ['PATH', 'LANG', 'TMPDIR', 'NODE_ENV'] as const
  const own = Object.fromEntries(
    allowed.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  )
  const cache = openChildCacheFolder()
  if (cache !== null) own.NODE_COMPILE_CACHE = cache
  return { ...own, MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' }
}

/** Starts a child with a module that calls `serveWork` (50 ms, plus the imports of the module). */
export function startChild(options: SandboxOptions, sandbox: Sandbox, limits: ChildLimits): Child {
  const command = [
    ...sandbox.command,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    `--max-old-space-size=${limits.heapMb}`,
    ...createPermissionFlags(options),
    options.entry,
  ]
  const [file, ...args] =
    process.platform === 'win32' ? command : ['/bin/sh', '-c', LIMIT_SCRIPT, 'sh', ...command]
  const child = spawn(file!, args, {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    serialization: 'advanced',
    env: createChildEnv(),
    // A working directory inside DATA_DIR would bypass the mount that hides it.
    cwd: '/',
  })
  return new RunningChild(child, limits)
}

interface PendingRequest {
  readonly limits: Limits
  /** Usage at the start of the request. Null until the request is sent, or if the platform doesn't report usage. */
  startUsage: Usage | null
  deadline: number
  at: number | null
  resolve(answer: unknown): void
  reject(error: Error): void
}

const WALL_TO_CPU_RATIO = 20
// Start timeout, long enough for an extremely busy machine.
const START_TIMEOUT_MS = 30_000

class RunningChild implements Child {
  readonly #child: ChildProcess
  readonly #limits: ChildLimits
  #pending: PendingRequest | null = null
  #lost: LossReason | null = null
  #stderr = ''
  readonly #started = Promise.withResolvers<void>()
  #hasStarted = false

  constructor(child: ChildProcess, limits: ChildLimits) {
    this.#child = child
    this.#limits = limits
    child.on('message', (message) => this.#onMessage(message as Message))
    watchEnd(child, () => this.#end())
    child.stderr?.on('data', (data) => {
      if (this.#stderr.length < MAX_STDERR_CHARACTERS)
        this.#stderr = `${this.#stderr}${data}`.slice(0, MAX_STDERR_CHARACTERS)
    })
    // An idle child must not keep its parent alive.
    for (const handle of [child, child.channel, child.stderr as unknown as { unref?(): void } | null])
      handle?.unref?.()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isAlive(): boolean {
    return this.#lost === null
  }

  get isBusy(): boolean {
    return this.#pending !== null
  }

  usage(): Usage | null {
    return readUsage(this.pid)
  }

  ask(kind: string, request: unknown, limits: Limits): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== null) return reject(this.#lossOf(this.#lost, null))
      if (this.#pending !== null)
        return reject(new Error('A child process got a request while another was running'))
      // Drops output of an earlier request.
      if (this.#hasStarted) this.#stderr = ''
      this.#pending = {
        limits,
        startUsage: null,
        deadline: performance.now() + START_TIMEOUT_MS,
        at: null,
        resolve,
        reject,
      }
      this.#child.channel?.ref()
      void this.#started.promise.then(() => this.#send(kind, request))
    })
  }

  #send(kind: string, request: unknown): void {
    if (this.#pending === null) return
    const { limits } = this.#pending
    this.#pending.startUsage = this.usage()
    this.#pending.deadline = performance.now() + (limits.wallMs ?? WALL_TO_CPU_RATIO * limits.cpuMs)
    sendMessage(this.#child, { kind, request })
  }

  check(now: number): void {
    const pending = this.#pending
    const usage = this.usage()
    if (pending !== null && now > pending.deadline) this.kill('time')
    else if (usage === null) return
    else if (usage.rssBytes > this.#limits.rssBytes) this.kill('memory')
    else if (pending?.startUsage && usage.cpuMs - pending.startUsage.cpuMs > pending.limits.cpuMs)
      this.kill('cpu')
  }

  kill(why: LossReason = 'crash'): void {
    this.#lost ??= why
    this.#child.kill('SIGKILL')
    this.#end()
  }

  #onMessage(message: Message): void {
    if (message.kind === 'ready') {
      this.#hasStarted = true
      this.#started.resolve()
      return
    }
    const pending = this.#pending
    if (pending === null) return
    if (message.kind === 'at') {
      pending.at = message.at
      return
    }
    this.#settle()
    if (message.kind === 'answer') pending.resolve(message.answer)
    else if (message.kind === 'refused') pending.reject(restoreFailure(message))
    else pending.reject(new Error(`A child process failed: ${message.error}`))
  }

  #end(): void {
    this.#lost ??= OUT_OF_MEMORY_PATTERN.test(this.#stderr) ? 'memory' : 'crash'
    const pending = this.#pending
    this.#settle()
    pending?.reject(this.#lossOf(this.#lost, pending.at))
  }

  /**
   * Returns the error for a lost child. `ChildLost` blames the input, so a child that never started gets another error:
   * processes are scarce or the installation is broken.
   */
  #lossOf(why: LossReason, at: number | null): Error {
    const stderr = this.#stderr.trim()
    if (this.#hasStarted) return new ChildLost(why, at, stderr)
    return fail('service.short', {}, { cause: new Error(`A child process did not start: ${stderr}`) })
  }

  #settle(): void {
    this.#pending = null
    this.#child.channel?.unref()
  }
}
