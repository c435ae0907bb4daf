import { ConnectionGroup } from '../connections/driver.ts'
import { createHealthCheck } from '../connections/health-check.ts'
import { requireStandby } from '../connections/hosts.ts'
import { Failure } from '../errors.ts'
import type { ReadOptions, ReadStatement } from './reader.ts'
import {
  createSlowReads,
  type ReadKind,
  type Reads,
  type SlowReadOptions,
  type SlowReads,
} from './slow-reads.ts'
import { type Position, parsePosition, type Wal } from './wal.ts'

/**
 * Sends reads to a standby. Each read also asks, in the same message, how far the answering server has replayed the
 * WAL. If that is not far enough, the primary repeats the read. Each read needs this check, because connections to one
 * address may reach several servers, and a standby may be promoted at any time.
 */
export interface ReplicaReads {
  /** Returns reads that see everything committed before `since`. */
  readsFor(caller: number, kind: ReadKind, since: Position): Reads
  readonly state: ReplicaState
  /** Last known lag behind the primary in bytes; null if unknown. */
  readonly lagBytes: number | null
  /** Numbers of reads that the standby and the primary have each answered. */
  readonly counts: Readonly<Record<'replica' | 'primary', number>>
  close(): Promise<void>
}

/**
 * - `used`: answers reads
 * - `away`: unresponsive, or not a standby
 * - `foreign`: a standby of another primary
 * - `behind`: lags by more than {@link MAX_LAG_MS}
 */
export type ReplicaState = 'used' | 'away' | 'foreign' | 'behind'

export interface ReplicaOptions extends Omit<SlowReadOptions, 'connections'> {
  /** Answers the reads that the standby cannot answer. */
  readonly primary: SlowReads
  readonly wal: Wal
  /** Receives the first known state and each change. */
  readonly onChange: (state: ReplicaState, error: unknown) => void
  readonly intervalMs?: number
}

/** A standby with a greater lag is not used, so no list is older than this. */
export const MAX_LAG_MS = 10_000

// A server that is not a standby reports position 0/0. A standby that changes its timeline reports the change after its
// next restartpoint (checkpoint_timeout), and is unused until then.
const PROGRESS_EXPRESSION = `concat_ws(' ',
  case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn(), '0/0') else '0/0' end,
  (select system_identifier from pg_control_system()) || '/' ||
  greatest((select timeline_id from pg_control_checkpoint()), (select min_recovery_end_timeline from pg_control_recovery())))`
const PROGRESS_STATEMENT: ReadStatement<[]> = {
  name: 'replica_progress',
  text: `select ${PROGRESS_EXPRESSION}`,
  isAuxiliary: true,
}

/** The server has not replayed the required position, or is not a standby of this service's primary. */
class NotCaughtUpError extends Error {}

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
  #replayed: Position = 0

  constructor(options: ReplicaOptions) {
    const { applicationName, intervalMs } = options
    const common = { url: requireStandby(options.url), connections: this.#connections }
    this.#options = options
    this.#reads = createSlowReads({ ...options, ...common })
    this.#healthCheck = createHealthCheck({
      ...common,
      applicationName: `${applicationName}-health`,
      expression: PROGRESS_EXPRESSION,
      onValue: (value) => this.#updateState(value),
      onChange: (state, error) => {
        if (state === 'silent') this.#setState('away', error)
      },
      ...(intervalMs && { intervalMs }),
    })
  }

  get lagBytes(): number | null {
    return this.state === 'away' ? null : this.#options.wal.countBytesAhead(this.#replayed)
  }

  readsFor(caller: number, kind: ReadKind, since: Position): Reads {
    const read = async <T>(send: SendRead<T>): Promise<T> => {
      const found = await this.#tryStandby(caller, kind, since, send)
      this.counts[found === null ? 'primary' : 'replica']++
      return found === null ? send(this.#options.primary.readsFor(caller, kind)) : found.value
    }
    return {
      text: (statement, values) => read((reads, readOptions) => reads.text(statement, values, readOptions)),
      texts: (statement, values) => read((reads, readOptions) => reads.texts(statement, values, readOptions)),
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#healthCheck.close(), this.#reads.close()])
  }

  /** Returns the standby's answer; null if the primary must answer. */
  async #tryStandby<T>(
    caller: number,
    kind: ReadKind,
    since: Position,
    send: SendRead<T>,
  ): Promise<{ readonly value: T } | null> {
    const floor = this.#options.wal.getLagFloor()
    if (this.state !== 'used' || floor === null) return null
    const check = (text: string | null): void => this.#assertCaughtUp(text!, Math.max(since, floor))
    return this.#reads.run(caller, kind, async (reader, { limitMs }) => {
      const early = performance.now() + limitMs * EARLY_CANCEL_FRACTION
      try {
        // If the last known progress is too old, check it first. Otherwise the whole read might be wasted.
        if (this.#replayed < since) check(await reader.text(PROGRESS_STATEMENT, []))
        return { value: await send(reader, { limitMs, precheck: { statement: PROGRESS_STATEMENT, check } }) }
      } catch (error) {
        if (canRetryOnPrimary(error, performance.now() < early)) return null
        throw error
      }
    })
  }

  /**
   * Checks the progress that the server reported.
   *
   * @throws NotCaughtUpError if the server has not replayed `wanted`, or is not a standby of this service's primary.
   */
  #assertCaughtUp(text: string, wanted: Position): void {
    const { replayed, lineage } = this.#parseProgress(text)
    this.#replayed = replayed
    if (lineage !== this.#options.wal.lineage || replayed < wanted) throw new NotCaughtUpError()
  }

  #updateState(text: string): void {
    const { replayed, lineage } = this.#parseProgress(text)
    const { wal } = this.#options
    this.#replayed = replayed
    const floor = wal.getLagFloor()
    // While the primary is silent, its position is unknown, so the lag cannot be judged.
    if (floor === null) return
    if (lineage !== wal.lineage) this.#setState('foreign')
    else this.#setState(replayed < floor ? 'behind' : 'used')
  }

  #parseProgress(text: string): { replayed: Position; lineage: string } {
    const [position = '', lineage = ''] = text.split(' ')
    const replayed = parsePosition(position)!
    if (replayed > 0) return { replayed, lineage }
    // Disconnect, so that new connections look for a standby again.
    this.#connections.closeAll()
    throw new NotCaughtUpError('The server is not a standby')
  }

  #setState(state: ReplicaState, error: unknown = null): void {
    if (this.#isStateKnown && state === this.state) return
    this.#isStateKnown = true
    this.state = state
    this.#options.onChange(state, error)
  }
}

type SendRead<T> = (reads: Reads, readOptions?: ReadOptions) => Promise<T>

// Fraction of a read's time limit. A read that the server cancels earlier was not too slow, so the primary may repeat
// it.
const EARLY_CANCEL_FRACTION = 0.8

/** Returns true if the primary may answer despite this error of the standby, such as a conflict with replay. */
function canRetryOnPrimary(error: unknown, isEarly: boolean): boolean {
  if (!(error instanceof Failure)) return error instanceof NotCaughtUpError
  return (
    ['database.busy', 'database.down'].includes(error.code) || (error.code === 'database.too_slow' && isEarly)
  )
}
