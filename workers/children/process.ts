import { type ChildProcess, spawn } from 'node:child_process'
import { storedFailure } from '../../sql/errors.ts'
import { childCodeFolder } from '../../tasks/code-cache.ts'
import { ChildLost, type Limits, type LossReason } from './ports.ts'
import { permissionFlags, type Sandbox, type SandboxOptions } from './sandbox.ts'
import { type Usage, usageOf } from './usage.ts'

/** One child process, as the pool sees it. */
export interface Child {
  readonly pid: number
  /** See `ChildLease.ask`; for any kind of request. */
  ask(kind: string, request: unknown, limits: Limits): Promise<unknown>
  /** Kills the child if its request has exceeded a limit. */
  check(now: number): void
  kill(why?: LossReason): void
  /** Whether a request is under way. */
  readonly isBusy: boolean
  readonly isAlive: boolean
  /** Null where the platform doesn't report it. */
  usage(): Usage | null
}

/** What a child sends: the result of a request, or its progress in it. */
export type Message =
  /** Sent once: it has started, and what it computes from now on is work. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly answer: unknown }
  /** A failure that a client may see. */
  | { readonly kind: 'refused'; readonly code: string; readonly detail: string }
  /** Anything else that was thrown. */
  | { readonly kind: 'failed'; readonly error: string }
  | { readonly kind: 'at'; readonly at: number }

/** Limits of a child for its whole life. */
export interface ChildLimits {
  /** V8's old space, in MiB. */
  readonly heapMb: number
  /** Resident memory in bytes, checked ten times a second. */
  readonly rssBytes: number
}

// Writable memory, in KiB (RLIMIT_DATA counts no reserved address space, of which WebAssembly takes 8 GiB for each
// memory): a single large allocation fails in the child, before the next check.
const DATA_KB = 2 * 2 ** 20
// Sets what a process can only set for itself: no core dumps, that limit, and being the first that the kernel kills
// when memory runs out. Where `sh` can't, only the limits that are checked apply.
const LIMITED = `ulimit -c 0; ulimit -d ${DATA_KB}; { echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; exec "$@"`
// How much of its stderr is kept for the log: V8 writes the reason first, and then its stack.
const STDERR_CHARACTERS = 3000
const OUT_OF_MEMORY =
  /heap out of memory|Allocation failed|allocation failed|out of memory|bad_alloc|result\.ptr|ERR_WORKER_OUT_OF_MEMORY/

// None of the service's own settings: no key, no address of the database.
const env = (): NodeJS.ProcessEnv => {
  const kept = ['PATH', 'LANG', 'TMPDIR', 'NODE_ENV'] as const
  const own = Object.fromEntries(
    kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  )
  const cache = childCodeFolder()
  if (cache !== null) own.NODE_COMPILE_CACHE = cache
  return { ...own, MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' }
}

/** Starts a child with a module that calls `serveWork` (50 ms, plus what the module loads). */
export function startChild(options: SandboxOptions, sandbox: Sandbox, limits: ChildLimits): Child {
  const command = [
    ...sandbox.command,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    `--max-old-space-size=${limits.heapMb}`,
    ...permissionFlags(options),
    options.entry,
  ]
  const [file, ...args] =
    process.platform === 'win32' ? command : ['/bin/sh', '-c', LIMITED, 'sh', ...command]
  const child = spawn(file!, args, {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    serialization: 'advanced',
    env: env(),
    // The parent's folder would lead around what covers DATA_DIR.
    cwd: '/',
  })
  return new RunningChild(child, limits)
}

interface Asked {
  readonly limits: Limits
  /** What the child had used before; null while it starts. */
  from: Usage | null
  endsBy: number
  at: number | null
  resolve(answer: unknown): void
  reject(error: Error): void
}

const WALL_TIMES = 20
// For the start of a child on an extremely busy machine.
const START_MS = 30_000

class RunningChild implements Child {
  readonly #child: ChildProcess
  readonly #limits: ChildLimits
  #asked: Asked | null = null
  #lost: LossReason | null = null
  #stderr = ''
  readonly #started = Promise.withResolvers<void>()
  #hasStarted = false

  constructor(child: ChildProcess, limits: ChildLimits) {
    this.#child = child
    this.#limits = limits
    child.on('message', (message) => this.#onMessage(message as Message))
    child.on('error', () => this.#end())
    // On `close`, all of its stderr has arrived, too.
    child.on('close', () => this.#end())
    child.stderr?.on('data', (data) => {
      if (this.#stderr.length < STDERR_CHARACTERS)
        this.#stderr = `${this.#stderr}${data}`.slice(0, STDERR_CHARACTERS)
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
    return this.#asked !== null
  }

  usage(): Usage | null {
    return usageOf(this.pid)
  }

  ask(kind: string, request: unknown, limits: Limits): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== null) return reject(this.#lossOf(this.#lost, null))
      if (this.#asked !== null) return reject(new Error('A child process was asked before its last answer'))
      // Drops what it wrote about an earlier request.
      if (this.#hasStarted) this.#stderr = ''
      this.#asked = { limits, from: null, endsBy: performance.now() + START_MS, at: null, resolve, reject }
      this.#child.channel?.ref()
      void this.#started.promise.then(() => this.#send(kind, request))
    })
  }

  #send(kind: string, request: unknown): void {
    if (this.#asked === null) return
    const { limits } = this.#asked
    this.#asked.from = this.usage()
    this.#asked.endsBy = performance.now() + (limits.wallMs ?? WALL_TIMES * limits.cpuMs)
    // Errors are ignored: a child that is gone emits `close`.
    this.#child.send({ kind, request }, () => {})
  }

  check(now: number): void {
    const asked = this.#asked
    const usage = this.usage()
    if (asked !== null && now > asked.endsBy) this.kill('time')
    else if (usage === null) return
    else if (usage.rssBytes > this.#limits.rssBytes) this.kill('memory')
    else if (asked?.from && usage.cpuMs - asked.from.cpuMs > asked.limits.cpuMs) this.kill('cpu')
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
    const asked = this.#asked
    if (asked === null) return
    if (message.kind === 'at') {
      asked.at = message.at
      return
    }
    this.#settle()
    if (message.kind === 'answer') asked.resolve(message.answer)
    else if (message.kind === 'refused') asked.reject(storedFailure(message))
    else asked.reject(new Error(`A child process failed: ${message.error}`))
  }

  #end(): void {
    this.#lost ??= OUT_OF_MEMORY.test(this.#stderr) ? 'memory' : 'crash'
    const asked = this.#asked
    this.#settle()
    asked?.reject(this.#lossOf(this.#lost, asked.at))
  }

  /** A child that never started was not lost over its work: no process was available, or the installation is broken. */
  #lossOf(why: LossReason, at: number | null): Error {
    const complaint = this.#stderr.trim()
    if (this.#hasStarted) return new ChildLost(why, at, complaint)
    return new Error(`A child process did not start: ${complaint}`)
  }

  #settle(): void {
    this.#asked = null
    this.#child.channel?.unref()
  }
}
