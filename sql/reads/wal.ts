import type { Reader, ReadStatement } from './reader.ts'
import type { Reads } from './slow-reads.ts'

/**
 * Positions in the primary's write-ahead log (https://www.postgresql.org/docs/current/functions-admin.html). A standby
 * replays the log in order. Once it reaches a position, it has everything that was committed before that position.
 */

/** Position in bytes, which a number represents exactly up to 8 PiB. */
export type Position = number

const HIGH_WORD_FACTOR = 2 ** 32
const POSITION_PATTERN = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i

/** Parses a position in PostgreSQL's notation; returns null if it is invalid. */
export function parsePosition(text: string): Position | null {
  const parts = POSITION_PATTERN.exec(text)
  return parts === null
    ? null
    : Number.parseInt(parts[1]!, 16) * HIGH_WORD_FACTOR + Number.parseInt(parts[2]!, 16)
}

export function formatPosition(position: Position): string {
  return [Math.floor(position / HIGH_WORD_FACTOR), position % HIGH_WORD_FACTOR]
    .map((n) => n.toString(16).toUpperCase())
    .join('/')
}

/** SQL for the end of the WAL, which is at or beyond every commit record; null on a standby. */
export const END_OF_WAL = 'case when not pg_is_in_recovery() then pg_current_wal_insert_lsn()::text end'

const WAL_END_STATEMENT: ReadStatement<[]> = { name: 'wal_end', text: `select ${END_OF_WAL}` }

// The flushed position is sampled too, because the primary sends only flushed WAL to a standby. An idle primary flushes
// everything.
const SAMPLE_STATEMENT: ReadStatement<[]> = {
  name: 'wal_sample',
  text: `select concat_ws(' ', pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn(), system_identifier || '/' ||
    ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int) from pg_control_system()`,
}

/** Tracks the end of the primary's WAL, as far as this process knows it. */
export interface Wal {
  /** A position at or beyond every commit of this process and every answer to a read from `trackReads`. */
  readonly end: Position
  /** Records the position that was read together with a commit. */
  recordCommit(position: string): void
  /** Wraps reads so that `end` covers each answer once it resolves. */
  trackReads(reader: Reads): Reads
  /** Returns a flushed position at or beyond every commit older than `maxLagMs`; null while the primary is silent. */
  getLagFloor(): Position | null
  /**
   * Returns the number of bytes between a position and the primary's last known flushed position; null before the first
   * sample.
   */
  countBytesAhead(position: Position): number | null
  /** The primary's cluster and timeline. A server with a different lineage is not its standby. */
  readonly lineage: string
  close(): void
}

interface WalSample {
  readonly at: number
  readonly flushed: Position
}

const SAMPLE_INTERVAL_MS = 1_000

/** Samples the primary once a second. Keeps only the samples that a lag of up to `maxLagMs` needs. */
export function watchWal(primary: Reader, maxLagMs: number): Wal {
  return new WatchedWal(primary, maxLagMs)
}

class WatchedWal implements Wal {
  end = 0
  lineage = ''
  readonly #primary: Reader
  readonly #maxLagMs: number
  #samples: WalSample[] = []
  /** The highest position seen since the last sample was requested. */
  #recent = 0
  #isClosed = false
  #timer: NodeJS.Timeout | undefined

  constructor(primary: Reader, maxLagMs: number) {
    this.#primary = primary
    this.#maxLagMs = maxLagMs
    void this.#watch()
  }

  recordCommit(position: string): void {
    const known = parsePosition(position)!
    this.end = Math.max(this.end, known)
    this.#recent = Math.max(this.#recent, known)
  }

  trackReads(reader: Reads): Reads {
    // The read and the query for the position are sent together, in this order.
    const withPosition = <T>(answer: Promise<T>): Promise<T> =>
      Promise.all([answer, this.#primary.text(WAL_END_STATEMENT, [])]).then(([value, position]) => {
        if (position !== null) this.recordCommit(position)
        return value
      })
    return {
      text: (statement, values) => withPosition(reader.text(statement, values)),
      texts: (statement, values) => withPosition(reader.texts(statement, values)),
    }
  }

  getLagFloor(): Position | null {
    const due = performance.now() - this.#maxLagMs
    const last = this.#samples.at(-1)
    if (last === undefined || last.at < due) return null
    return (this.#samples.findLast(({ at }) => at <= due) ?? this.#samples[0]!).flushed
  }

  countBytesAhead(position: Position): number | null {
    const last = this.#samples.at(-1)
    return last === undefined ? null : Math.max(0, last.flushed - position)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #watch(): Promise<void> {
    const at = performance.now()
    const before = this.end
    this.#recent = 0
    // If the primary is silent, no sample is added and the existing ones age.
    const text = await this.#primary.text(SAMPLE_STATEMENT, []).catch(() => null)
    if (text !== null) this.#recordSample(text, before, at)
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#watch(), SAMPLE_INTERVAL_MS).unref()
  }

  #recordSample(text: string, before: Position, at: number): void {
    const [end = '', flushed = '', lineage = ''] = text.split(' ')
    // If the end of the WAL has moved back, a failover has lost the WAL beyond it.
    if (before > parsePosition(end)!) this.end = this.#recent
    this.recordCommit(end)
    if (lineage !== this.lineage) this.#samples = []
    this.lineage = lineage
    const oldest = this.#samples.findLastIndex((sample) => sample.at <= at - this.#maxLagMs)
    this.#samples = [...this.#samples.slice(Math.max(0, oldest)), { at, flushed: parsePosition(flushed)! }]
  }
}
