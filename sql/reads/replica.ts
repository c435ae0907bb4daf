import { ConnectionGroup } from '../connections/driver.ts'
import { createHealthCheck } from '../connections/health-check.ts'
import { requireStandby } from '../connections/hosts.ts'
import { Failure } from '../errors.ts'
import type { Reader, ReadStatement } from './reader.ts'
import {
  createSlowReads,
  type ReadKind,
  type Reads,
  type SlowReadOptions,
  type SlowReads,
} from './slow-reads.ts'

/**
 * Sends reads to a standby, whose answers may be some seconds old. The primary answers if the standby cannot. So only
 * reads whose age does not matter use it, such as statistics.
 */
export interface ReplicaReads {
  /** Returns reads for a caller. `onLag` receives the lag of each answer of the standby, in seconds. */
  readsFor(caller: number, kind: ReadKind, onLag: (seconds: number) => void): Reads
  readonly state: ReplicaState
  /** Lag behind the primary at the last check, in seconds; null if unknown. */
  readonly lagSeconds: number | null
  /** Numbers of reads that the standby and the primary have each answered. */
  readonly counts: Readonly<Record<'replica' | 'primary', number>>
  close(): Promise<void>
}

/**
 * - `used`: answers reads
 * - `away`: unresponsive, or not a standby
 * - `foreign`: a standby of another primary
 * - `behind`: lags by more than {@link MAX_LAG_SECONDS}
 */
export type ReplicaState = 'used' | 'away' | 'foreign' | 'behind'

export interface ReplicaOptions extends Omit<SlowReadOptions, 'connections'> {
  /** Answers the reads that the standby cannot answer. */
  readonly primary: { readonly reader: Reader; readonly slowReads: SlowReads }
  /** Receives the first known state and each change. */
  readonly onChange: (state: ReplicaState, error: unknown) => void
  readonly intervalMs?: number
}

/** A standby with a greater lag is not used. */
export const MAX_LAG_SECONDS = 10

// Both report a position in the write-ahead log and the cluster's identity. The primary reports the flushed position,
// because it sends no more than that to a standby. The standby reports the replayed position, and nothing if it is none.
const PRIMARY_STATEMENT: ReadStatement<[]> = {
  name: 'replica_primary',
  text: `select concat_ws(' ', pg_current_wal_flush_lsn(), system_identifier) from pg_control_system()`,
}
const STANDBY_EXPRESSION = `coalesce((select concat_ws(' ', coalesce(pg_last_wal_replay_lsn(), '0/0'), system_identifier)
  from pg_control_system() where pg_is_in_recovery()), '')`

interface Progress {
  /** Position in the write-ahead log, in bytes. */
  readonly position: number
  readonly cluster: string
}

function parseProgress(text: string): Progress {
  const [high = '', low = '', cluster = ''] = text.split(/[/ ]/)
  return { position: Number.parseInt(high, 16) * 2 ** 32 + Number.parseInt(low, 16), cluster }
}

/** Creates replica reads. Connecting starts immediately but is not awaited. */
export function createReplicaReads(options: ReplicaOptions): ReplicaReads {
  return new StandbyReads(options)
}

class StandbyReads implements ReplicaReads {
  state: ReplicaState = 'away'
  readonly counts = { replica: 0, primary: 0 }
  readonly #options: ReplicaOptions
  readonly #connections = new ConnectionGroup()
  readonly #reads: SlowReads
  readonly #healthCheck: { close(): Promise<void> }
  #isStateKnown = false
  /** Progress of the primary at the checks of the last seconds, oldest first. */
  #samples: (Progress & { readonly at: number })[] = []
  #replayed = 0

  constructor(options: ReplicaOptions) {
    const { applicationName, intervalMs } = options
    const common = { url: requireStandby(options.url), connections: this.#connections }
    this.#options = options
    this.#reads = createSlowReads({ ...options, ...common })
    this.#healthCheck = createHealthCheck({
      ...common,
      applicationName: `${applicationName}-health`,
      expression: STANDBY_EXPRESSION,
      onValue: (value) => this.#check(value),
      onChange: (state, error) => {
        if (state === 'silent') this.#setState('away', error)
      },
      ...(intervalMs && { intervalMs }),
    })
  }

  get lagSeconds(): number | null {
    const seconds = this.#measureLag()
    return this.state === 'away' || this.state === 'foreign' || !Number.isFinite(seconds) ? null : seconds
  }

  readsFor(caller: number, kind: ReadKind, onLag: (seconds: number) => void): Reads {
    const { slowReads } = this.#options.primary
    const read = async <T>(send: (reads: Reads, limit?: { readonly limitMs: number }) => Promise<T>) => {
      if (this.state === 'used')
        try {
          const value = await this.#reads.run(caller, kind, send)
          onLag(this.#measureLag())
          this.counts.replica++
          return value
        } catch (error) {
          if (!(error instanceof Failure && RETRIED_CODES.has(error.code))) throw error
        }
      this.counts.primary++
      return send(slowReads.readsFor(caller, kind))
    }
    return {
      text: (statement, values) => read((reads, limit) => reads.text(statement, values, limit)),
      texts: (statement, values) => read((reads, limit) => reads.texts(statement, values, limit)),
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#healthCheck.close(), this.#reads.close()])
  }

  #check(value: string): void {
    if (value === '') {
      // Disconnects, so that new connections look for a standby again.
      this.#connections.closeAll()
      throw new Error('The server is not a standby')
    }
    const { position, cluster } = parseProgress(value)
    this.#replayed = position
    void this.#samplePrimary().then((primary) => {
      if (primary === undefined) return
      if (primary.cluster !== cluster) this.#setState('foreign')
      else this.#setState(this.#measureLag() > MAX_LAG_SECONDS ? 'behind' : 'used')
    })
  }

  /** Returns the primary's last known progress. If the primary is silent, the samples age. */
  async #samplePrimary(): Promise<Progress | undefined> {
    const at = performance.now()
    const text = await this.#options.primary.reader.text(PRIMARY_STATEMENT, []).catch(() => null)
    const recent = this.#samples.filter((sample) => sample.at > at - 2 * MAX_LAG_SECONDS * 1000)
    this.#samples = text === null ? recent : [...recent, { ...parseProgress(text), at }]
    return this.#samples.at(-1)
  }

  /** Returns the age of the newest sample that the standby has replayed, in whole seconds; Infinity if there is none. */
  #measureLag(): number {
    const replayed = this.#samples.findLast(({ position }) => position <= this.#replayed)
    return Math.ceil((performance.now() - (replayed?.at ?? Number.NEGATIVE_INFINITY)) / 1000)
  }

  #setState(state: ReplicaState, error: unknown = null): void {
    if (this.#isStateKnown && state === this.state) return
    this.#isStateKnown = true
    this.state = state
    this.#options.onChange(state, error)
  }
}

// Failures of the standby that the primary may not have, such as a conflict with replay. The primary would be too slow,
// too.
const RETRIED_CODES: ReadonlySet<string> = new Set(['database.busy', 'database.down'])
