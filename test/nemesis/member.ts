import { setTimeout as delay } from 'node:timers/promises'
import { listChildPids } from '../child-pids.ts'
import type { Link } from '../flow/link.ts'
import { type Child, launchProcess } from '../service.ts'

// Delay of a restart, like that of an init system.
const RESTART_DELAY_MS = 200

/** An edge or a worker that is restarted whenever it exits, as an init system would. */
export class Member {
  readonly name: string
  readonly kind: 'edge' | 'worker'
  /** Links of this member only, one to each database server. */
  readonly links: readonly Link[]
  /** Unexpected exits, each with the last line of the log. */
  readonly unexpectedExits: string[] = []
  /** Log lines of all processes of this member. */
  readonly log: string[] = []
  starts = 0
  readonly #url: string
  readonly #env: Readonly<Record<string, string>>
  #child: Child | null = null
  #startedAt = 0
  #upAt = 0
  #expected = false
  #stopped = false
  #living: Promise<void> = Promise.resolve()

  constructor(
    name: string,
    kind: Member['kind'],
    links: readonly Link[],
    url: string,
    env: Readonly<Record<string, string>>,
  ) {
    this.name = name
    this.kind = kind
    this.links = links
    this.#url = url
    this.#env = env
  }

  /** Port of the edge; null while it is down. */
  get port(): number | null {
    return this.#child?.ready.port ?? null
  }

  get isUp(): boolean {
    return this.#child !== null
  }

  /** True if the uptime of the process is at least the duration of its start. */
  get isSteady(): boolean {
    return this.isUp && performance.now() - this.#upAt >= this.#upAt - this.#startedAt
  }

  begin(): void {
    this.#living = this.#live()
  }

  /** Ends the current process, if any. The member then starts another one. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#expected = true
    await this.#child?.kill(signal)
  }

  async freeze(ms: number): Promise<void> {
    const child = this.#child
    if (child === null) return
    child.process.kill('SIGSTOP')
    await delay(ms)
    child.process.kill('SIGCONT')
  }

  /** Returns the ids of the process's direct children. */
  listChildPids(): number[] {
    const pid = this.#child?.process.pid
    return pid === undefined ? [] : listChildPids(pid)
  }

  /** Stops the member permanently: sends SIGTERM, and SIGKILL after 15 s. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#expected = true
    this.#child?.process.kill('SIGCONT')
    const timer = setTimeout(() => void this.#child?.kill('SIGKILL'), 15_000)
    await this.#child?.kill('SIGTERM')
    clearTimeout(timer)
    await this.#living
  }

  async #live(): Promise<void> {
    while (!this.#stopped) {
      this.#expected = false
      this.starts++
      this.#startedAt = performance.now()
      try {
        const child = await launchProcess(this.kind, this.#url, this.#env, [], this.log)
        this.#child = child
        this.#upAt = performance.now()
        if (this.#stopped) await child.kill()
        if (child.process.exitCode === null && child.process.signalCode === null)
          await new Promise((resolve) => child.process.once('exit', resolve))
      } catch {
        // The process exited before it was ready; its log has the reason.
      }
      this.#child = null
      if (!this.#expected) this.unexpectedExits.push(`${this.name} exited unexpectedly: ${this.log.at(-1)}`)
      await delay(RESTART_DELAY_MS)
    }
  }
}
