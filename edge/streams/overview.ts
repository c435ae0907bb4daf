import type { Database } from '../../sql/db.ts'
import { BUCKET_SECONDS, type Monitor, readMonitor } from '../../sql/jobs/monitor.ts'
import { compact } from '../http/compact.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * What the monitor shows, for all who watch it in this process: read when a notification says that something has
 * changed, and passed on where it has. Each part of it is whole in itself, so a slow reader is sent the latest.
 */
export interface Overview {
  /** Parts as they change, beginning with all of them. Answers how to stop. */
  watch(push: (parts: readonly Part[]) => void): () => void
  /** Every part as it was last read. */
  whole(): readonly Part[]
  /** A job has changed, or a worker has come or gone. */
  notified(): void
  close(): void
}

/** One part: the name of its event, and the JSON text of its data. */
export interface Part {
  readonly event: PartName
  readonly data: string
}

const PARTS = ['queues', 'workers', 'running', 'waiting', 'failed'] as const
type PartName = (typeof PARTS)[number] | 'ended'
type EndedRow = readonly [queue: string, bucket: number, ...rest: number[]]

/** How far back the ends of jobs are counted. */
export const HISTORY_SECONDS = 600

// As smooth as a progress bar needs it.
const GAP_MS = 250
// Of the database's time for this, at most a fifth: with a million jobs in the queues it shows them less often.
const REST = 4
// What no notification tells: memory, a worker that is gone without a word, a hint that was lost.
const TICK_MS = 5_000
// An end bears the time at which its transaction began, and may be read this much later.
const LATE_SECONDS = 2

export function createOverview(
  db: Database,
  keptSeconds: number,
  onError: (error: unknown) => void,
): Overview {
  const watchers = new Set<(parts: readonly Part[]) => void>()
  const texts = new Map<PartName, string>()
  const ended = new Map<string, EndedRow>()
  let at = ''
  let readAt: number | null = null
  let reading = false
  let dirty = false
  let next: NodeJS.Timeout | null = null
  let rested = 0

  const part = (event: PartName, items: string): Part => ({ event, data: `{"at":"${at}","items":${items}}` })

  const whole = (): Part[] =>
    at === '' ? [] : [...PARTS.map((name) => part(name, texts.get(name)!)), endedPart([...ended.values()])]

  const endedPart = (rows: readonly EndedRow[]): Part => ({
    event: 'ended',
    data: JSON.stringify({ at, bucket_seconds: BUCKET_SECONDS, items: rows }),
  })

  /** Answers what of it is news. */
  const take = (row: Monitor): readonly Part[] => {
    const first = at === ''
    at = row.at
    const changed: Part[] = []
    for (const name of PARTS) {
      const items = compact(row[name])
      if (texts.get(name) === items) continue
      texts.set(name, items)
      changed.push(part(name, items))
    }
    const fresh = (JSON.parse(row.ended) as EndedRow[]).filter((item) => {
      const key = `${item[0]}\t${item[1]}`
      if (JSON.stringify(ended.get(key)) === JSON.stringify(item)) return false
      ended.set(key, item)
      return true
    })
    const oldest = (Date.parse(at) / 1000 - HISTORY_SECONDS) / BUCKET_SECONDS
    for (const [key, [, bucket]] of ended) if (bucket < oldest) ended.delete(key)
    if (first) return whole()
    return fresh.length === 0 ? changed : [...changed, endedPart(fresh)]
  }

  const read = async (): Promise<void> => {
    next = null
    if (reading || watchers.size === 0) return
    reading = true
    const startedAt = performance.now()
    try {
      const gap = readAt === null ? HISTORY_SECONDS : (startedAt - readAt) / 1000 + LATE_SECONDS
      const parts = take(await db.one(readMonitor(Math.min(gap, HISTORY_SECONDS), keptSeconds)))
      readAt = startedAt
      if (parts.length > 0) for (const push of watchers) push(parts)
    } catch (error) {
      // The next notification or tick reads again, as far back as this one would have.
      onError(error)
    } finally {
      reading = false
      const now = performance.now()
      rested = now + Math.max(GAP_MS, (now - startedAt) * REST)
      if (dirty) wake()
    }
  }

  const wake = (): void => {
    dirty = reading
    if (reading || next !== null || watchers.size === 0) return
    next = setTimeout(read, Math.max(0, rested - performance.now())).unref()
  }
  const tick = setInterval(wake, TICK_MS).unref()

  return {
    watch: (push) => {
      // Nobody has watched for a while: what is known is of then.
      if (watchers.size === 0) {
        at = ''
        texts.clear()
      }
      watchers.add(push)
      if (at !== '') push(whole())
      wake()
      return () => watchers.delete(push)
    },
    whole,
    notified: wake,
    close: () => {
      clearInterval(tick)
      if (next !== null) clearTimeout(next)
      watchers.clear()
    },
  }
}

/** Follows the overview. Ids are milliseconds of sending; who comes back is sent the whole. */
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
