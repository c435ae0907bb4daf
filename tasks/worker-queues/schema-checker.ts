import { type ChildProcess, fork } from 'node:child_process'
import { createSlots } from '../../sql/connections/slots.ts'
import { fail } from '../../sql/errors.ts'
import { readUsage } from '../platform/process-usage.ts'
import type { CheckReply, CheckRequest, SchemaProblem } from './schema-process.ts'

/**
 * Checks values against callers' JSON Schemas, in processes of its own. A schema may take exponential time and memory, so a
 * check has a limit of CPU time, after which its process is killed. Owners take turns.
 */
export interface SchemaChecker {
  /**
   * Returns the first problem of each value, and null for those that match. Values are JSON texts.
   * @throws fail('database.busy') if the machine or other checks take too long.
   */
  check(owner: number, schema: unknown, values: readonly string[]): Promise<readonly (SchemaProblem | null)[]>
  /** Returns the reason why a schema cannot be compiled; null if it can. */
  compile(owner: number, schema: unknown): Promise<string | null>
  close(): void
}

export type { SchemaProblem } from './schema-process.ts'

// An owner without a slot gets an extra one, so there are two processes at most.
const SLOTS = 1
// A check of 10,000 small values takes some 20 ms.
const CHECK_CPU_MS = 2_000
const LOOK_MS = 100
// A busy machine takes seconds to start a process.
const WAIT_MS = 10_000
const MAX_HEAP_MB = 128
const IDLE_MS = 60_000

const PROGRAM = new URL('./schema-process.ts', import.meta.url)
const EXCEEDED: SchemaProblem = { path: [], message: 'takes too long or too much memory to check' }

/**
 * @param cpuMs limit of the CPU time of a check
 * @param waitMs limit of the wait for a slot, and then of the time until the answer
 */
export function createSchemaChecker(cpuMs = CHECK_CPU_MS, waitMs = WAIT_MS): SchemaChecker {
  return new ProcessChecker(cpuMs, waitMs)
}

class ProcessChecker implements SchemaChecker {
  readonly #cpuMs: number
  readonly #waitMs: number
  readonly #slots = createSlots(SLOTS)
  readonly #idle: ChildProcess[] = []
  readonly #all = new Set<ChildProcess>()

  constructor(cpuMs: number, waitMs: number) {
    this.#cpuMs = cpuMs
    this.#waitMs = waitMs
  }

  async check(owner: number, schema: unknown, values: readonly string[]) {
    return (await this.#run(owner, { schema: JSON.stringify(schema), values })) ?? values.map(() => EXCEEDED)
  }

  async compile(owner: number, schema: unknown): Promise<string | null> {
    const found = await this.#run(owner, { schema: JSON.stringify(schema), values: null })
    return (found ?? [EXCEEDED])[0]?.message ?? null
  }

  close(): void {
    for (const child of this.#all) child.kill('SIGKILL')
  }

  /** Runs a request; null if it exceeded its limits. */
  async #run(owner: number, request: CheckRequest): Promise<readonly (SchemaProblem | null)[] | null> {
    if ((await this.#slots.reserve(owner, 1, this.#waitMs)) === 0) throw fail('database.busy')
    const child = this.#idle.pop() ?? this.#start()
    try {
      const answer = await this.#ask(child, request)
      if (typeof answer !== 'string') {
        this.#idle.push(child)
        return answer
      }
      child.kill('SIGKILL')
      if (answer === 'busy') throw fail('database.busy')
      return null
    } finally {
      this.#slots.release(owner, 1)
    }
  }

  /** Resolves with the answer of a process, or with the reason why there is none. */
  #ask(child: ChildProcess, request: CheckRequest): Promise<Answer> {
    return new Promise((resolve) => {
      const deadline = performance.now() + this.#waitMs
      let startCpuMs: number | null = null
      const finish = (answer: Answer): void => {
        clearInterval(timer)
        child.off('message', onMessage).off('exit', onExit)
        resolve(answer)
      }
      const onMessage = (reply: CheckReply): void => {
        if (typeof reply === 'number') startCpuMs = reply
        else finish(reply)
      }
      // V8 aborts a process without memory. Only others send SIGKILL, such as the kernel if the machine has no memory.
      const onExit = (_code: number | null, signal: NodeJS.Signals | null): void =>
        finish(startCpuMs === null || signal === 'SIGKILL' ? 'busy' : 'exceeded')
      const look = (): void => {
        const usage = readUsage(child.pid ?? 0)
        const cpuMs = usage === null || startCpuMs === null ? null : usage.cpuMs - startCpuMs
        if (cpuMs !== null && cpuMs >= this.#cpuMs) finish('exceeded')
        // Without a CPU time, the process has not started, or the platform reports none.
        else if (performance.now() >= deadline)
          finish(cpuMs === null && startCpuMs !== null ? 'exceeded' : 'busy')
      }
      // If this process was stopped, it first reads an answer that has arrived.
      const timer = setInterval(() => setImmediate(look), LOOK_MS)
      child.on('message', onMessage).on('exit', onExit)
      child.send(request, (error) => error !== null && finish('busy'))
    })
  }

  /** Starts a process without this process's environment, which has secrets. It ends when it has been idle for a while. */
  #start(): ChildProcess {
    const execArgv = ['--disable-warning=ExperimentalWarning', `--max-old-space-size=${MAX_HEAP_MB}`]
    const child = fork(PROGRAM, [String(IDLE_MS)], {
      execArgv,
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.#all.add(child)
    // The process ends by itself when this one has.
    child.unref()
    child.channel?.unref()
    return child
      .on('error', () => {})
      .on('exit', () => {
        this.#all.delete(child)
        const index = this.#idle.indexOf(child)
        if (index >= 0) this.#idle.splice(index, 1)
      })
  }
}

/** The problems of the values. `exceeded` blames the schema, and `busy` the machine. */
type Answer = readonly (SchemaProblem | null)[] | 'exceeded' | 'busy'

let shared: SchemaChecker | null = null

/** Returns the checker of this thread, for tasks. Its processes end with it. */
export function getSchemaChecker(): SchemaChecker {
  shared ??= createSchemaChecker()
  return shared
}
