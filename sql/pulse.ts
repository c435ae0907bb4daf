import { setTimeout as delay } from 'node:timers/promises'
import { type Client, type Connections, connect } from './driver.ts'
import { mapDatabaseError } from './errors.ts'

/** `read-only`: it answers but refuses writes; `silent`: it does not answer or can't be reached. */
export type DatabaseState = 'writable' | 'read-only' | 'silent'

/** A health check of the database, once a second over a dedicated connection, and the offset of its clock. */
export interface Pulse {
  readonly state: DatabaseState
  /** How far the database's clock was ahead of this process's at the last beat, in ms. */
  readonly clockOffsetMs: number
  /**
   * The database's time in ms since 1970: use it for times that other processes compare. Between beats it goes on by a
   * monotonic clock: setting this process's does not change it.
   */
  now(): number
  /** Has an effect each time that the database answers again after a silence. */
  onBack(effect: () => void): void
  close(): Promise<void>
}

export interface PulseOptions {
  readonly url: string
  readonly applicationName: string
  /** The process's connections: closed when the database goes silent or becomes read-only. */
  readonly connections: Connections
  readonly onChange: (state: DatabaseState, error: unknown) => void
  /** Called when the clocks begin to differ by more than 10 s, and when they no longer do. */
  readonly onClock?: (offsetMs: number) => void
  /** An SQL expression of type text that is asked for with each beat. */
  readonly probe?: string
  /** Gets its value. What it throws says that this is not the server that is wanted: another one is looked for. */
  readonly onProbe?: (value: string) => void
  readonly intervalMs?: number
  readonly answerMs?: number
}

// Together less than 3 s from the last answer until silence is detected.
const INTERVAL_MS = 1_000
const ANSWER_MS = 1_500
const RETRY_MS = 250
// The wait is split so that, after a freeze, pending input is read between two checks.
const LOOKS = 5

class Silence extends Error {}

const isOff = (offsetMs: number): boolean => Math.abs(offsetMs) > 10_000

interface Beat {
  readonly now_ms: number
  readonly read_only: string
  readonly probe: string
}

/** Starts the check; resolves with the first answer. @throws the connection error. */
export async function startPulse(options: PulseOptions): Promise<Pulse> {
  const pulse = new BeatingPulse(options)
  await pulse.start()
  return pulse
}

/** Starts the check of a database that may be away from the beginning. */
export function watchPulse(options: PulseOptions): Pulse {
  const pulse = new BeatingPulse(options)
  pulse.watch()
  return pulse
}

class BeatingPulse implements Pulse {
  state: DatabaseState = 'silent'
  clockOffsetMs = 0
  readonly #options: PulseOptions
  /** The database's time when `performance.now()` was 0, in ms. */
  #originMs = performance.timeOrigin
  readonly #stop = new AbortController()
  readonly #effects: (() => void)[] = []
  #beating: Promise<void> = Promise.resolve()

  constructor(options: PulseOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#beating = this.#run(await this.#first())
  }

  watch(): void {
    const { onChange } = this.#options
    this.#beating = this.#first()
      .catch((error) => {
        onChange('silent', mapDatabaseError(error))
        return null
      })
      .then((client) => this.#run(client))
  }

  async #first(): Promise<Client> {
    const client = await this.#connect()
    try {
      this.state = await this.#beat(client)
      return client
    } catch (error) {
      await client.end()
      throw error
    }
  }

  now(): number {
    return this.#originMs + performance.now()
  }

  onBack(effect: () => void): void {
    this.#effects.push(effect)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#beating
  }

  async #run(first: Client | null): Promise<void> {
    const { intervalMs = INTERVAL_MS } = this.#options
    let client: Client | null = first
    let hasAnswered = client !== null
    while (!this.#isStopped) {
      try {
        client ??= await this.#connect()
        this.#enter(await this.#beat(client), null)
        hasAnswered = true
        await this.#pause(intervalMs, client)
      } catch (error) {
        // A connection that the server closed is replaced before the database counts as silent, but not if it never
        // answered: a pooler takes clients while its server is away.
        const isReplaced = hasAnswered && !(error instanceof Silence)
        hasAnswered = false
        client?.end().catch(() => {})
        client = null
        if (isReplaced) continue
        this.#enter('silent', error)
        await this.#pause(RETRY_MS, null)
      }
    }
    await client?.end().catch(() => {})
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  #connect(): Promise<Client> {
    const { url, applicationName, answerMs = ANSWER_MS } = this.#options
    // In no group: it is the one that connects while the others are refused.
    return connect({ url, applicationName, connectMs: answerMs })
  }

  async #beat(client: Client): Promise<DatabaseState> {
    const { probe = `''`, onProbe } = this.#options
    const sentAt = performance.now()
    const { rows } = await this.#answered(
      client.query<Beat>(`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms,
        current_setting('transaction_read_only') as read_only, ${probe} as probe`),
    )
    const { now_ms: now, read_only: readOnly, probe: value } = rows[0]!
    onProbe?.(value)
    const before = this.clockOffsetMs
    this.#originMs = now - (sentAt + performance.now()) / 2
    this.clockOffsetMs = this.now() - Date.now()
    if (isOff(before) !== isOff(this.clockOffsetMs)) this.#options.onClock?.(this.clockOffsetMs)
    return readOnly === 'on' ? 'read-only' : 'writable'
  }

  async #answered<T>(answer: Promise<T>): Promise<T> {
    const { answerMs = ANSWER_MS } = this.#options
    const over = new AbortController()
    try {
      for (let look = 0; look < LOOKS; look++) {
        const late = delay(answerMs / LOOKS, null, { ref: false, signal: over.signal })
        const come = await Promise.race([answer.then((value) => ({ value })), late])
        if (come !== null) return come.value
      }
    } finally {
      over.abort()
    }
    answer.catch(() => {})
    throw new Silence(`Connection terminated: the database has not answered for ${answerMs} ms`)
  }

  #enter(state: DatabaseState, error: unknown): void {
    if (state === this.state) return
    const before = this.state
    this.state = state
    const { connections } = this.#options
    // The server is gone or demoted: statements already sent to it will not be answered.
    if (state === 'silent') connections.refuse()
    else connections.accept()
    if (state === 'read-only') connections.break()
    this.#options.onChange(state, mapDatabaseError(error))
    if (before === 'silent') for (const effect of this.#effects) effect()
  }

  /** Waits until the time has passed, the connection has ended, or the check is closed. */
  async #pause(ms: number, client: Client | null): Promise<void> {
    if (this.#isStopped) return
    const over = new AbortController()
    const end = (): void => over.abort()
    // Not AbortSignal.any: it leaves a reference in the signal of the whole pulse with each beat.
    this.#stop.signal.addEventListener('abort', end)
    client?.once('end', end)
    await delay(ms, undefined, { signal: over.signal }).catch(() => {})
    client?.removeListener('end', end)
    this.#stop.signal.removeEventListener('abort', end)
  }
}
