import { Connections } from './driver.ts'
import { Failure } from './errors.ts'
import { standbyUrl } from './hosts.ts'
import { watchPulse } from './pulse.ts'
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
 * Reads that a standby may answer. Each one asks, in the same message, how far the server has come that answers it, and
 * counts only if that is far enough: connections of one address may lead to several servers, and a standby may be
 * promoted at any time. The primary reads again what did not count.
 */
export interface ReplicaReads {
  /** Reads that have whatever was committed before the position. */
  of(caller: number, kind: ReadKind, since: Position): Reads
  readonly state: ReplicaState
  /** How many bytes behind the primary it was at last; null while that is not known. */
  readonly behind: number | null
  /** How many reads each has answered. */
  readonly counts: Readonly<Record<'replica' | 'primary', number>>
  close(): Promise<void>
}

/**
 * `used`; `away`: it does not answer, or is not a standby; `foreign`: a standby of another primary than ours; `behind`:
 * by more than {@link MAX_LAG_MS}.
 */
export type ReplicaState = 'used' | 'away' | 'foreign' | 'behind'

export interface ReplicaOptions extends Omit<SlowReadOptions, 'connections'> {
  /** Reads that the standby can't answer. */
  readonly primary: SlowReads
  readonly wal: Wal
  /** Called when it is first known, and with each change. */
  readonly onChange: (state: ReplicaState, error: unknown) => void
  readonly intervalMs?: number
}

/** A standby that lags more is not used: nobody sees lists that are older, and what was written before is everywhere. */
export const MAX_LAG_MS = 10_000

// Nothing of a server that is not a standby. A standby that changes to another timeline says so after its next
// restartpoint (checkpoint_timeout), and is not used until then.
const PROGRESS = `concat_ws(' ',
  case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn(), '0/0') else '0/0' end,
  (select system_identifier from pg_control_system()) || '/' ||
  greatest((select timeline_id from pg_control_checkpoint()), (select min_recovery_end_timeline from pg_control_recovery())))`
const READ_PROGRESS: ReadStatement<[]> = {
  name: 'replica_progress',
  text: `select ${PROGRESS}`,
  isAside: true,
}

/** What a standby must have come to is missing. */
class NotThere extends Error {}

/** Connects at once, and waits for nothing. */
export function createReplicaReads(options: ReplicaOptions): ReplicaReads {
  return new StandbyReads(options)
}

class StandbyReads implements ReplicaReads {
  state: ReplicaState = 'away'
  readonly counts = { replica: 0, primary: 0 }
  readonly #options: ReplicaOptions
  readonly #connections = new Connections()
  readonly #reads: SlowReads
  readonly #pulse: { close(): Promise<void> }
  #isKnown = false
  #replayed: Position = 0

  constructor(options: ReplicaOptions) {
    const { applicationName, intervalMs } = options
    const common = { url: standbyUrl(options.url), connections: this.#connections }
    this.#options = options
    this.#reads = createSlowReads({ ...options, ...common })
    this.#pulse = watchPulse({
      ...common,
      applicationName: `${applicationName}-pulse`,
      probe: PROGRESS,
      onProbe: (value) => this.#judge(value),
      onChange: (state, error) => {
        if (state === 'silent') this.#enter('away', error)
      },
      ...(intervalMs && { intervalMs }),
    })
  }

  get behind(): number | null {
    return this.state === 'away' ? null : this.#options.wal.ahead(this.#replayed)
  }

  of(caller: number, kind: ReadKind, since: Position): Reads {
    const read = async <T>(send: Send<T>): Promise<T> => {
      const found = await this.#try(caller, kind, since, send)
      this.counts[found === null ? 'primary' : 'replica']++
      return found === null ? send(this.#options.primary.of(caller, kind)) : found.value
    }
    return {
      text: (statement, values) => read((reads, how) => reads.text(statement, values, how)),
      texts: (statement, values) => read((reads, how) => reads.texts(statement, values, how)),
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#pulse.close(), this.#reads.close()])
  }

  /** The answer of the standby; null if it has none. */
  async #try<T>(
    caller: number,
    kind: ReadKind,
    since: Position,
    send: Send<T>,
  ): Promise<{ readonly value: T } | null> {
    const floor = this.#options.wal.floor()
    if (this.state !== 'used' || floor === null) return null
    const check = (text: string | null): void => this.#check(text!, Math.max(since, floor))
    return this.#reads.run(caller, kind, async (reader, { limitMs }) => {
      const early = performance.now() + limitMs * EARLY
      try {
        // Without what was known before, the whole read might be in vain.
        if (this.#replayed < since) check(await reader.text(READ_PROGRESS, []))
        return { value: await send(reader, { limitMs, first: { statement: READ_PROGRESS, check } }) }
      } catch (error) {
        if (isForPrimary(error, performance.now() < early)) return null
        throw error
      }
    })
  }

  /** @throws NotThere if the server lacks something before the position, or is none of ours. */
  #check(text: string, wanted: Position): void {
    const { replayed, lineage } = this.#progressOf(text)
    this.#replayed = replayed
    if (lineage !== this.#options.wal.lineage || replayed < wanted) throw new NotThere()
  }

  #judge(text: string): void {
    const { replayed, lineage } = this.#progressOf(text)
    const { wal } = this.#options
    this.#replayed = replayed
    const floor = wal.floor()
    // The primary does not answer, and there is nothing to compare with.
    if (floor === null) return
    if (lineage !== wal.lineage) this.#enter('foreign')
    else this.#enter(replayed < floor ? 'behind' : 'used')
  }

  #progressOf(text: string): { replayed: Position; lineage: string } {
    const [position = '', lineage = ''] = text.split(' ')
    const replayed = parsePosition(position)!
    if (replayed > 0) return { replayed, lineage }
    // New connections look for a standby again.
    this.#connections.break()
    throw new NotThere('The server is not a standby')
  }

  #enter(state: ReplicaState, error: unknown = null): void {
    if (this.#isKnown && state === this.state) return
    this.#isKnown = true
    this.state = state
    this.#options.onChange(state, error)
  }
}

type Send<T> = (reads: Reads, how?: ReadOptions) => Promise<T>

// Of the time that a read may take: one that is cancelled sooner was not too slow.
const EARLY = 0.8

/** Whether the primary may answer what this error kept the standby from: conflicts with what it replays among them. */
function isForPrimary(error: unknown, isEarly: boolean): boolean {
  if (!(error instanceof Failure)) return error instanceof NotThere
  return (
    ['database.busy', 'database.down'].includes(error.code) || (error.code === 'database.too_slow' && isEarly)
  )
}
