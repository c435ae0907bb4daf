import { type Monitor, monitorOf, readMonitor } from '../../sql/jobs/monitor.ts'
import type { Reads } from '../../sql/slow-reads.ts'
import { compact } from '../http/compact.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * What the monitor shows, for all who watch it in this process: read when a notification says that something has
 * changed, and the changed parts are pushed. Each part is complete in itself, so a slow reader is sent only the latest.
 */
export interface Overview {
  /** Pushes parts as they change, beginning with all of them. Returns how to stop. */
  watch(push: (parts: readonly Part[]) => void): () => void
  /** Every part as it was last read. */
  whole(): readonly Part[]
  /** Called when a job has changed, or a worker has come or gone. */
  notified(): void
  close(): void
}

/** One part: the name of its event, and the JSON text of its data. */
export interface Part {
  readonly event: PartName
  readonly data: string
}

const PARTS = ['queues', 'workers', 'running', 'waiting', 'failed'] as const
type PartName = (typeof PARTS)[number]

// Often enough for a smooth progress bar.
const GAP_MS = 250
// Reads take at most a fifth of the time: with a million jobs in the queues they are less frequent.
const REST = 4
// For what no notification reports: memory, a worker that has vanished, a lost notification.
const TICK_MS = 5_000

/** `keptSeconds`: how long ended jobs are kept. `onError` gets read errors; a later read makes up for a failed one. */
export function createOverview(
  reader: Reads,
  keptSeconds: number,
  onError: (error: unknown) => void,
): Overview {
  return new SharedOverview(reader, keptSeconds, onError)
}

/** Reads while somebody watches, with gaps in between, and once more if it was notified meanwhile. */
class SharedOverview implements Overview {
  readonly #reader: Reads
  readonly #keptSeconds: number
  readonly #onError: (error: unknown) => void
  readonly #watchers = new Set<(parts: readonly Part[]) => void>()
  readonly #snapshot = new Snapshot()
  readonly #tick: NodeJS.Timeout
  /** `outdated`: reading, and something has changed since it began. */
  #phase: 'idle' | 'scheduled' | 'reading' | 'outdated' = 'idle'
  #timer: NodeJS.Timeout | undefined
  /** When the next read may begin. */
  #restUntil = 0

  constructor(reader: Reads, keptSeconds: number, onError: (error: unknown) => void) {
    this.#reader = reader
    this.#keptSeconds = keptSeconds
    this.#onError = onError
    this.#tick = setInterval(() => this.notified(), TICK_MS).unref()
  }

  watch(push: (parts: readonly Part[]) => void): () => void {
    // Nobody has watched for a while, so the snapshot is stale.
    if (this.#watchers.size === 0) this.#snapshot.expire()
    this.#watchers.add(push)
    const parts = this.whole()
    if (parts.length > 0) push(parts)
    this.notified()
    return () => this.#watchers.delete(push)
  }

  whole(): readonly Part[] {
    return this.#snapshot.whole()
  }

  notified(): void {
    if (this.#phase === 'reading') this.#phase = 'outdated'
    if (this.#phase !== 'idle' || this.#watchers.size === 0) return
    this.#phase = 'scheduled'
    const restMs = Math.max(0, this.#restUntil - performance.now())
    this.#timer = setTimeout(() => this.#read(), restMs).unref()
  }

  close(): void {
    clearInterval(this.#tick)
    clearTimeout(this.#timer)
    this.#watchers.clear()
  }

  async #read(): Promise<void> {
    if (this.#watchers.size === 0) {
      this.#phase = 'idle'
      return
    }
    this.#phase = 'reading'
    const startedAt = performance.now()
    try {
      const parts = this.#snapshot.update(
        monitorOf(await this.#reader.texts(readMonitor, [this.#keptSeconds])),
      )
      if (parts.length > 0) for (const push of this.#watchers) push(parts)
    } catch (error) {
      // The next notification or tick reads again.
      this.#onError(error)
    } finally {
      this.#rest(startedAt)
    }
  }

  #rest(startedAt: number): void {
    const outdated = this.#phase === 'outdated'
    this.#phase = 'idle'
    const now = performance.now()
    this.#restUntil = now + Math.max(GAP_MS, (now - startedAt) * REST)
    if (outdated) this.notified()
  }
}

/** What was last read. */
class Snapshot {
  readonly #items = new Map<PartName, string>()
  /** The database's time of the read; empty before the first one, or after it has expired. */
  #at = ''

  /** Starts over with the next row. */
  expire(): void {
    this.#at = ''
    this.#items.clear()
  }

  /** Every part; none before there is a row. */
  whole(): readonly Part[] {
    if (this.#at === '') return []
    return PARTS.map((name) => this.#part(name, this.#items.get(name)!))
  }

  /** Returns the parts that have changed, or all of them for the first row. */
  update(row: Monitor): readonly Part[] {
    const first = this.#at === ''
    this.#at = row.at
    const changed = this.#updateItems(row)
    return first ? this.whole() : changed
  }

  #updateItems(row: Monitor): Part[] {
    const changed: Part[] = []
    for (const name of PARTS) {
      const items = compact(row[name])
      if (this.#items.get(name) === items) continue
      this.#items.set(name, items)
      changed.push(this.#part(name, items))
    }
    return changed
  }

  #part(event: PartName, items: string): Part {
    return { event, data: `{"at":"${this.#at}","items":${items}}` }
  }
}

/** Follows the overview. Ids are the time of sending in ms; a reader who comes back is sent every part. */
export function followOverview(overview: Overview): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream: SseStream) => {
      let behind = false
      const send = (parts: readonly Part[]): void => {
        if (!stream.writable) {
          behind = true
          return
        }
        const id = String(Date.now())
        stream.send(parts.map(({ event, data }): SseFrame => ({ event, id, data })))
      }
      stream.onWritable(() => {
        if (!behind) return
        behind = false
        send(overview.whole())
      })
      return overview.watch(send)
    },
  }
}
