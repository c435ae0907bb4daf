import type { JobRetention } from '../../sql/jobs/jobs.ts'
import { type Monitor, parseMonitor, readMonitor } from '../../sql/jobs/monitor.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { compactJson } from '../http/reply.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * Data of the job monitor, shared by all its watchers in this process. Notifications trigger a read, and changed parts
 * are pushed. Each part is self-contained, so a slow subscriber needs only the latest ones.
 */
export interface Overview {
  /** Pushes all parts, then each part that changes. Returns a function that stops the watch. */
  watch(push: (parts: readonly Part[]) => void): () => void
  /** Returns all parts from the last read. */
  allParts(): readonly Part[]
  /** Schedules a read. Must be called after a change of a job or of the set of workers. */
  scheduleRead(): void
  close(): void
}

/** One part: its event name and its data as JSON. */
export interface Part {
  readonly event: PartName
  readonly data: string
}

const PART_NAMES = ['queues', 'workers', 'running', 'queued', 'waiting', 'failed'] as const
type PartName = (typeof PART_NAMES)[number]

// Minimum time between reads. It is short enough for a smooth progress bar.
const MIN_PAUSE_MS = 250
// Pause after a read, as a multiple of its duration. Reads take at most a fifth of the time, even with a million jobs.
const PAUSE_RATIO = 4
// Refresh interval. Covers changes without a notification, such as memory usage or a vanished worker.
const REFRESH_INTERVAL_MS = 5_000

/**
 * Creates the overview. `retention` is the retention of ended jobs. `onError` receives read errors, after which
 * the next read retries.
 */
export function createOverview(
  reader: Reads,
  retention: JobRetention,
  onError: (error: unknown) => void,
): Overview {
  return new SharedOverview(reader, retention, onError)
}

/** Reads only while there are watchers, pauses after each read, and reads again if notified during a read. */
class SharedOverview implements Overview {
  readonly #reader: Reads
  readonly #retention: JobRetention
  readonly #onError: (error: unknown) => void
  readonly #watchers = new Set<(parts: readonly Part[]) => void>()
  readonly #snapshot = new MonitorSnapshot()
  readonly #tick: NodeJS.Timeout
  /** `outdated` means that a notification has arrived since the read in progress began. */
  #phase: 'idle' | 'scheduled' | 'reading' | 'outdated' = 'idle'
  #timer: NodeJS.Timeout | undefined
  /** Earliest time of the next read. */
  #nextReadAt = 0

  constructor(reader: Reads, retention: JobRetention, onError: (error: unknown) => void) {
    this.#reader = reader
    this.#retention = retention
    this.#onError = onError
    this.#tick = setInterval(() => this.scheduleRead(), REFRESH_INTERVAL_MS).unref()
  }

  watch(push: (parts: readonly Part[]) => void): () => void {
    // Nothing was read without watchers, so the snapshot is stale.
    if (this.#watchers.size === 0) this.#snapshot.expire()
    this.#watchers.add(push)
    const parts = this.allParts()
    if (parts.length > 0) push(parts)
    this.scheduleRead()
    return () => this.#watchers.delete(push)
  }

  allParts(): readonly Part[] {
    return this.#snapshot.allParts()
  }

  scheduleRead(): void {
    if (this.#phase === 'reading') this.#phase = 'outdated'
    if (this.#phase !== 'idle' || this.#watchers.size === 0) return
    this.#phase = 'scheduled'
    const restMs = Math.max(0, this.#nextReadAt - performance.now())
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
        parseMonitor(await this.#reader.texts(readMonitor, [this.#retention])),
      )
      if (parts.length > 0) for (const push of this.#watchers) push(parts)
    } catch (error) {
      // The next notification or refresh retries.
      this.#onError(error)
    } finally {
      this.#finishRead(startedAt)
    }
  }

  #finishRead(startedAt: number): void {
    const outdated = this.#phase === 'outdated'
    this.#phase = 'idle'
    const now = performance.now()
    this.#nextReadAt = now + Math.max(MIN_PAUSE_MS, (now - startedAt) * PAUSE_RATIO)
    if (outdated) this.scheduleRead()
  }
}

/** Parts of the job monitor, as of the last read. */
class MonitorSnapshot {
  /** The fields of each part after its time. */
  readonly #fields = new Map<PartName, string>()
  /** Time of the read on the database's clock. Empty before the first read and after expire(). */
  #at = ''

  /** Drops the data, so that the next update returns every part. */
  expire(): void {
    this.#at = ''
    this.#fields.clear()
  }

  /** Returns every part, or an empty array before the first update. */
  allParts(): readonly Part[] {
    if (this.#at === '') return []
    return PART_NAMES.map((name) => this.#part(name, this.#fields.get(name)!))
  }

  /** Returns the changed parts, or all parts for the first row. */
  update(row: Monitor): readonly Part[] {
    const isFirst = this.#at === ''
    this.#at = row.at
    const changed = this.#updateFields(row)
    return isFirst ? this.allParts() : changed
  }

  #updateFields(row: Monitor): Part[] {
    const changed: Part[] = []
    for (const name of PART_NAMES) {
      const fields = formatFields(row, name)
      if (this.#fields.get(name) === fields) continue
      this.#fields.set(name, fields)
      changed.push(this.#part(name, fields))
    }
    return changed
  }

  #part(event: PartName, fields: string): Part {
    return { event, data: `{"at":"${this.#at}",${fields}}` }
  }
}

/** Returns the items of a part, and its total if the list may lack some. */
function formatFields(row: Monitor, name: PartName): string {
  const items = `"items":${compactJson(row[name])}`
  return name === 'queues' || name === 'workers' ? `${items},"total":${compactJson(row.totals[name])}` : items
}

/**
 * Resolves to all parts of the overview as JSON text, after a read if there are no watchers; null if `signal` aborts
 * before.
 */
export function readOverview(overview: Overview, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    let stop: (() => void) | null = null
    const finish = (text: string | null): void => {
      stop?.()
      resolve(text)
    }
    const push = (): void => {
      const parts = overview.allParts().map(({ event, data }) => `"${event}":${data}`)
      finish(`{${parts.join(',')}}`)
    }
    signal.addEventListener('abort', () => finish(null))
    stop = overview.watch(push)
    // The watch pushes immediately if others watch.
    if (overview.allParts().length > 0) push()
  })
}

/** Streams the overview. An event id is the time of sending in ms. A resumed stream begins with every part. */
export function followOverview(overview: Overview): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream: SseStream) => {
      let isBehind = false
      const send = (parts: readonly Part[]): void => {
        if (!stream.writable) {
          isBehind = true
          return
        }
        const id = String(Date.now())
        stream.send(parts.map(({ event, data }): SseFrame => ({ event, id, data })))
      }
      stream.onWritable(() => {
        if (!isBehind) return
        isBehind = false
        send(overview.allParts())
      })
      return overview.watch(send)
    },
  }
}
