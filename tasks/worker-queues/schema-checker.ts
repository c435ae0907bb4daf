import { type ChildProcess, fork } from 'node:child_process'
import { createSlots } from '../../sql/connections/slots.ts'
import { fail } from '../../sql/errors.ts'
import type { CheckReply, CheckRequest, SchemaProblem } from './schema-process.ts'

/**
 * Checks values against callers' JSON Schemas, in processes of its own. A schema may take exponential time and memory, so a
 * check has a time limit, after which its process is killed. Owners take turns.
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
// A check of 10,000 small values takes some 20 ms. But a process may be starting, and the machine may be busy.
const CHECK_MS = 5_000
const WAIT_MS = 10_000
const MAX_HEAP_MB = 128
const IDLE_MS = 60_000

const PROGRAM = new URL('./schema-process.ts', import.meta.url)
const EXCEEDED: SchemaProblem = { path: [], message: 'takes too long or too much memory to check' }

/** @param checkMs time limit of a check */
export function createSchemaChecker(checkMs = CHECK_MS): SchemaChecker {
  return new ProcessChecker(checkMs)
}

class ProcessChecker implements SchemaChecker {
  readonly #checkMs: number
  readonly #slots = createSlots(SLOTS)
  readonly #idle: ChildProcess[] = []
  readonly #all = new Set<ChildProcess>()

  constructor(checkMs: number) {
    this.#checkMs = checkMs
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
    if ((await this.#slots.reserve(owner, 1, WAIT_MS)) === 0) throw fail('database.busy')
    const child = this.#idle.pop() ?? this.#start()
    try {
      const { hasStarted, problems } = await this.#ask(child, request)
      if (problems !== null) this.#idle.push(child)
      else child.kill('SIGKILL')
      // A process that has not even started is a shortage of the machine, whatever the schema.
      if (!hasStarted) throw fail('database.busy')
      return problems
    } finally {
      this.#slots.release(owner, 1)
    }
  }

  /** Resolves with the answer of a process, or with null if it dies or the time is over. */
  #ask(child: ChildProcess, request: CheckRequest): Promise<Answer> {
    return new Promise((resolve) => {
      let hasStarted = false
      const finish = (problems: Answer['problems']): void => {
        clearTimeout(timer)
        child.removeAllListeners('message')
        child.off('exit', onExit)
        resolve({ hasStarted, problems })
      }
      const onExit = (): void => finish(null)
      const timer = setTimeout(onExit, this.#checkMs)
      child.on('exit', onExit).on('message', (reply: CheckReply) => {
        if (reply === 'started') hasStarted = true
        else finish(reply)
      })
      child.send(request, (error) => error !== null && onExit())
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

interface Answer {
  readonly hasStarted: boolean
  readonly problems: readonly (SchemaProblem | null)[] | null
}

let shared: SchemaChecker | null = null

/** Returns the checker of this thread, for tasks. Its processes end with it. */
export function getSchemaChecker(): SchemaChecker {
  shared ??= createSchemaChecker()
  return shared
}
