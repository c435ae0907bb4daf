import { setTimeout as delay } from 'node:timers/promises'
import { mapDatabaseError } from '../error-mapping.ts'
import { type Client, type ConnectionGroup, connect } from './driver.ts'

/** `read-only` responds but refuses writes. `silent` is unresponsive or unreachable. */
export type DatabaseState = 'writable' | 'read-only' | 'silent'

/**
 * Checks once a second, over a dedicated connection, whether the database responds and accepts writes. Also measures
 * the offset of the database's clock.
 */
export interface HealthCheck {
  readonly state: DatabaseState
  /** Lead of the database's clock over this process's clock at the last probe, in ms. */
  readonly clockOffsetMs: number
  /**
   * Returns the database's time in ms since 1970. Several processes can compare such times. A monotonic clock advances
   * it between probes, so changes of the system clock have no effect.
   */
  now(): number
  /** Runs `effect` each time the database responds again after it was silent. */
  onRecovered(effect: () => void): void
  close(): Promise<void>
}

export interface HealthCheckOptions {
  readonly url: string
  readonly applicationName: string
  /** The process's connections. The health check closes them when the database goes silent or becomes read-only. */
  readonly connections: ConnectionGroup
  readonly onChange: (state: DatabaseState, error: unknown) => void
  /** Runs when the clock offset exceeds 10 s in either direction, and when it falls below that again. */
  readonly onClock?: (offsetMs: number) => void
  /** SQL expression of type text, which each probe evaluates. */
  readonly expression?: string
  /** Receives the value of `expression`. If the callback throws, the check reconnects to find another server. */
  readonly onValue?: (value: string) => void
  readonly intervalMs?: number
  readonly answerMs?: number
}

// These limits together detect silence less than 3 s after the last answer.
const PROBE_INTERVAL_MS = 1_000
const ANSWER_TIMEOUT_MS = 1_500
// Silence closes all connections, and their logins burden a slow server even more. So each silence doubles the limit of
// an answer, up to this factor. It falls back once the database has answered for `CALM_MS`.
const MAX_PATIENCE = 4
const CALM_MS = 60_000
// Delay before the next attempt to connect; it doubles with each failure.
const RETRY_DELAY_MS = 250
const MAX_RETRY_DELAY_MS = 1_000
// The limit of a login, which is also that of the pools.
const MAX_CONNECT_MS = 5_000
// The wait for an answer is split into this many timers. After a freeze, the process reads pending input between two of
// them.
const TIMEOUT_PARTS = 5

class SilenceError extends Error {}

const isSkewed = (offsetMs: number): boolean => Math.abs(offsetMs) > 10_000

interface ProbeRow {
  readonly now_ms: number
  readonly read_only: string
  readonly value: string
}

/**
 * Starts the health check and waits for the first answer.
 *
 * @throws the connection error.
 */
export async function startHealthCheck(options: HealthCheckOptions): Promise<HealthCheck> {
  const healthCheck = new PeriodicHealthCheck(options)
  await healthCheck.start()
  return healthCheck
}

/** Starts the health check of a database that may be unreachable at first. */
export function createHealthCheck(options: HealthCheckOptions): HealthCheck {
  const healthCheck = new PeriodicHealthCheck(options)
  healthCheck.watch()
  return healthCheck
}

class PeriodicHealthCheck implements HealthCheck {
  state: DatabaseState = 'silent'
  clockOffsetMs = 0
  readonly #options: HealthCheckOptions
  /** Time of the database in ms when `performance.now()` was 0. */
  #originMs = performance.timeOrigin
  /** Factor of the limit of an answer. */
  #patience = 1
  #silentAt = Number.NEGATIVE_INFINITY
  readonly #stop = new AbortController()
  readonly #effects: (() => void)[] = []
  #running: Promise<void> = Promise.resolve()

  constructor(options: HealthCheckOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#running = this.#run(await this.#connectAndProbe())
  }

  watch(): void {
    const { onChange } = this.#options
    this.#running = this.#connectAndProbe()
      .catch((error) => {
        onChange('silent', mapDatabaseError(error))
        return null
      })
      .then((client) => this.#run(client))
  }

  async #connectAndProbe(): Promise<Client> {
    const client = await this.#connect()
    try {
      this.state = await this.#probe(client)
      return client
    } catch (error) {
      await client.end()
      throw error
    }
  }

  now(): number {
    return this.#originMs + performance.now()
  }

  onRecovered(effect: () => void): void {
    this.#effects.push(effect)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(first: Client | null): Promise<void> {
    const { intervalMs = PROBE_INTERVAL_MS } = this.#options
    let client: Client | null = first
    let hasAnswered = client !== null
    let failures = 0
    while (!this.#isStopped) {
      try {
        client ??= await this.#connect(failures)
        this.#setState(await this.#probe(client), null)
        hasAnswered = true
        failures = 0
        if (performance.now() - this.#silentAt > CALM_MS) this.#patience = 1
        await this.#pause(intervalMs, client)
      } catch (error) {
        // The server may have closed a working connection, so try a new one before reporting silence. If the new one
        // gets no answer, report silence: a pooler accepts clients while its server is down.
        const isReplaced = hasAnswered && !(error instanceof SilenceError)
        hasAnswered = false
        client?.end().catch(() => {})
        client = null
        if (isReplaced) continue
        this.#setState('silent', error)
        await this.#pause(Math.min(RETRY_DELAY_MS * 2 ** failures++, MAX_RETRY_DELAY_MS), null)
      }
    }
    await client?.end().catch(() => {})
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  /** Connects. After silences the limit starts low and doubles: the next attempt may reach a server that is back. */
  #connect(failures = 0): Promise<Client> {
    const { url, applicationName, answerMs = ANSWER_TIMEOUT_MS } = this.#options
    const limit =
      failures === 0 ? {} : { connectMs: Math.min(answerMs * 2 ** (failures - 1), MAX_CONNECT_MS) }
    // This connection belongs to no group, because the probe must connect while the group refuses connections.
    return connect({ url, applicationName, ...limit })
  }

  async #probe(client: Client): Promise<DatabaseState> {
    const { expression = `''`, onValue } = this.#options
    const sentAt = performance.now()
    // Asking for the usage of the NOTIFY queue frees what all listeners have read. PostgreSQL otherwise does so only with
    // a NOTIFY, which fails while the queue is full.
    const { rows } = await this.#awaitAnswer(
      client.query<ProbeRow>(`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms,
        current_setting('transaction_read_only') as read_only, ${expression} as value, pg_notification_queue_usage()`),
    )
    const { now_ms: now, read_only: readOnly, value } = rows[0]!
    onValue?.(value)
    const before = this.clockOffsetMs
    this.#originMs = now - (sentAt + performance.now()) / 2
    this.clockOffsetMs = this.now() - Date.now()
    if (isSkewed(before) !== isSkewed(this.clockOffsetMs)) this.#options.onClock?.(this.clockOffsetMs)
    return readOnly === 'on' ? 'read-only' : 'writable'
  }

  async #awaitAnswer<T>(answer: Promise<T>): Promise<T> {
    const answerMs = (this.#options.answerMs ?? ANSWER_TIMEOUT_MS) * this.#patience
    const abort = new AbortController()
    try {
      for (let check = 0; check < TIMEOUT_PARTS; check++) {
        const timeout = delay(answerMs / TIMEOUT_PARTS, null, { ref: false, signal: abort.signal })
        const answered = await Promise.race([answer.then((value) => ({ value })), timeout])
        if (answered !== null) return answered.value
      }
    } finally {
      abort.abort()
    }
    answer.catch(() => {})
    throw new SilenceError(`Connection terminated: the database has not answered for ${answerMs} ms`)
  }

  #setState(state: DatabaseState, error: unknown): void {
    if (state === this.state) return
    const before = this.state
    this.state = state
    const { connections } = this.#options
    // The server is gone or demoted, so it will not answer statements in flight.
    if (state === 'silent') {
      this.#silentAt = performance.now()
      this.#patience = Math.min(this.#patience * 2, MAX_PATIENCE)
      connections.refuse()
    } else connections.accept()
    if (state === 'read-only') connections.closeAll()
    this.#options.onChange(state, mapDatabaseError(error))
    if (before === 'silent') for (const effect of this.#effects) effect()
  }

  /** Waits until `ms` have passed, the connection ends, or the check is closed. */
  async #pause(ms: number, client: Client | null): Promise<void> {
    if (this.#isStopped) return
    const abort = new AbortController()
    const end = (): void => abort.abort()
    // AbortSignal.any would leave a reference in the long-lived signal with each pause.
    this.#stop.signal.addEventListener('abort', end)
    client?.once('end', end)
    await delay(ms, undefined, { signal: abort.signal }).catch(() => {})
    client?.removeListener('end', end)
    this.#stop.signal.removeEventListener('abort', end)
  }
}
