import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { collectLines, SHORT_LIVED_FLAGS } from '../../service.ts'
import type { EdgeLink } from './link.ts'
import type { WorkerMessage } from './messages.ts'

// Delay of a restart, like that of an init system.
const RESTART_DELAY_MS = 200
const SCRIPT = new URL('./worker.ts', import.meta.url)

/** A process that claims jobs over HTTP, and is restarted whenever it exits. */
export class HttpWorker {
  readonly name: string
  readonly link: EdgeLink
  readonly log: string[] = []
  starts = 0
  readonly #env: Readonly<Record<string, string>>
  readonly #onMessage: (message: WorkerMessage) => void
  #child: ChildProcess | null = null
  #expected = false
  #stopped = false
  readonly #living: Promise<void>

  /** Starts the worker. `env` has the token and the seed of its process. */
  constructor(
    name: string,
    link: EdgeLink,
    env: Readonly<Record<string, string>>,
    onMessage: (message: WorkerMessage) => void,
  ) {
    this.name = name
    this.link = link
    this.#env = { ...env, NAME: name, PORT: String(link.port) }
    this.#onMessage = onMessage
    this.#living = this.#live()
  }

  /** Kills the process; another one then starts. */
  kill(): void {
    this.#expected = true
    this.#child?.kill('SIGKILL')
  }

  async freeze(ms: number): Promise<void> {
    const child = this.#child
    child?.kill('SIGSTOP')
    await delay(ms)
    child?.kill('SIGCONT')
  }

  /** Stops the worker permanently, and closes its link. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.kill()
    await this.#living
    this.link.close()
  }

  async #live(): Promise<void> {
    while (!this.#stopped) {
      this.#expected = false
      this.starts++
      const child = fork(SCRIPT, [], {
        execArgv: SHORT_LIVED_FLAGS,
        env: { ...process.env, ...this.#env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      for (const output of [child.stdout!, child.stderr!]) collectLines(output, this.log)
      child.on('message', (message) => this.#onMessage(message as WorkerMessage))
      this.#child = child
      await new Promise((resolve) => child.once('exit', resolve))
      this.#child = null
      if (!this.#expected)
        this.#onMessage({
          kind: 'violation',
          text: `${this.name} exited unexpectedly: ${this.log.slice(-5).join(' ')}`,
        })
      await delay(RESTART_DELAY_MS)
    }
  }
}
