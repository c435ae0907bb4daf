import { setImmediate as nextTurn } from 'node:timers/promises'
import { EVENTS_AT_ONCE, readEventsAfter, readLiveIds, readStates } from '../../sql/jobs.ts'
import type { Reader } from '../../sql/reader.ts'
import { compact } from '../http/compact.ts'
import { type EndedAfter, type EndedJobs, readEnded, type Viewer } from '../pipeline/ended.ts'

/** One event of a job, as it stands in the ledger. */
export interface JobEvent {
  readonly jobId: string
  readonly seq: number
  /** `status` for frames of the job itself, else what its task emitted. */
  readonly kind: string
  /** The job's status, when the kind is `status`. */
  readonly status: string
  readonly ownerId: number | null
  /** JSON text for the client. */
  readonly frame: string
}

/**
 * Fans the ledger's events out to whoever waits for them in this process. A notification says where to look; what
 * is delivered is read from the table, after each subscriber's cursor: in order, without gaps, however many
 * notifications came or were lost.
 */
export interface Hub {
  /** Events of a job after a cursor, in batches, beginning with those that are there already. Answers how to stop. */
  watchJob(jobId: string, after: number, push: (events: readonly JobEvent[]) => void): () => void
  /** Each new state of any job. */
  watchAll(push: (states: readonly JobEvent[]) => void): () => void
  /** A payload of the channel `job_events`; null after a reconnect, when anything may have been missed. */
  notified(payload: string | null): void
  /** The job's terminal event, or null when it has not come within the time. */
  terminal(jobId: string, waitMs: number, signal?: AbortSignal): Promise<JobEvent | null>
  /** Ends every wait for a terminal event, as if its time were up. */
  stopWaiting(): void
  readonly watchers: number
  close(): void
}

interface Subscriber {
  after: number
  readonly push: (events: readonly JobEvent[]) => void
}

// The first reading of a lost hint: a crash between storing and notifying loses only the notification.
const POLL_MS = 5_000
const EVERYBODY: Viewer = [null, true]
// A burst for thousands of readers costs 14 µs for each: requests get their turn in between.
const TURN_MS = 0.25
// Clocks differ, and a job's end bears the time at which its transaction began.
export const OVERLAP_MS = 1_000
const TERMINAL = new Set(['done', 'failed', 'cancelled'])

export function isTerminal(event: JobEvent): boolean {
  return event.kind === 'status' && TERMINAL.has(event.status)
}

export function createHub(reader: Reader, onError: (error: unknown) => void): Hub {
  const topics = new Map<string, Set<Subscriber>>()
  const everything = new Set<(states: readonly JobEvent[]) => void>()
  const dirty = new Set<string>()
  const changed = new Set<string>()
  const waiting = new Set<() => void>()
  // What the watchers of everything were told of: two notifications may find the same state, and a poll most of them.
  const told = createTold()
  // The watchers of everything may have missed what came after `knownUntil`, in ms.
  let missed = false
  let knownUntil = 0
  let reading = false
  let watchers = 0

  const wake = (): void => {
    if (reading) return
    reading = true
    queueMicrotask(readAll)
  }

  const readAll = async (): Promise<void> => {
    try {
      while (dirty.size > 0 || changed.size > 0 || missed) {
        if (dirty.size > 0) await readTopics()
        if (changed.size > 0) await readChanged()
        if (missed) await readMissed()
      }
    } catch (error) {
      // The next notification or poll reads again from the same cursors.
      onError(error)
    } finally {
      reading = false
    }
  }

  const readTopics = async (): Promise<void> => {
    const ids: string[] = []
    const cursors: number[] = []
    for (const id of dirty) {
      const subscribers = topics.get(id)
      if (subscribers === undefined) continue
      ids.push(id)
      cursors.push(Math.min(...Array.from(subscribers, ({ after }) => after)))
    }
    dirty.clear()
    if (ids.length === 0) return
    const lines = await reader.texts(readEventsAfter, [ids, cursors])
    const from = new Map(ids.map((id, i) => [id, cursors[i]!]))
    let turnEnds = performance.now() + TURN_MS
    for (const events of byJob(lines.map(parseLine))) {
      const { jobId } = events[0]!
      if (events.length === EVENTS_AT_ONCE) dirty.add(jobId)
      for (const subscriber of topics.get(jobId) ?? []) {
        deliver(subscriber, from.get(jobId)!, events)
        if (performance.now() < turnEnds) continue
        await nextTurn()
        turnEnds = performance.now() + TURN_MS
      }
    }
  }

  const readChanged = async (): Promise<void> => {
    const ids = [...changed]
    changed.clear()
    pushFresh(await reader.texts(readStates, [ids]))
  }

  const readMissed = async (): Promise<void> => {
    missed = false
    const startedAt = Date.now()
    pushFresh(await reader.texts(readStates, [await reader.texts(readLiveIds, EVERYBODY)]))
    let from: EndedAfter | null = { ms: knownUntil - OVERLAP_MS, jobId: null }
    while (from !== null) {
      const { ids, next }: EndedJobs = await readEnded(reader, EVERYBODY, from)
      const news = ids.filter((id) => !told.hasEnded(id))
      if (news.length > 0) pushFresh(await reader.texts(readStates, [news]))
      // What has just happened does not wait until all is read that has happened since.
      if (dirty.size > 0) await readTopics()
      if (changed.size > 0) await readChanged()
      from = next
    }
    knownUntil = startedAt
  }

  const pushFresh = (lines: readonly string[]): void => {
    const fresh = lines.map(parseLine).filter((state) => told.isNews(state))
    if (fresh.length > 0) for (const push of everything) push(fresh)
  }

  const markAll = (): void => {
    for (const id of topics.keys()) dirty.add(id)
    missed = everything.size > 0
    wake()
  }
  const poll = setInterval(markAll, POLL_MS).unref()

  const watchJob: Hub['watchJob'] = (jobId, after, push) => {
    const subscriber = { after, push }
    const subscribers = topics.get(jobId) ?? new Set()
    topics.set(jobId, subscribers.add(subscriber))
    watchers++
    dirty.add(jobId)
    wake()
    return () => {
      if (!subscribers.delete(subscriber)) return
      watchers--
      if (subscribers.size === 0 && topics.get(jobId) === subscribers) topics.delete(jobId)
    }
  }

  return {
    watchJob,
    watchAll: (push) => {
      if (everything.size === 0) knownUntil = Date.now()
      everything.add(push)
      return () => everything.delete(push)
    },
    notified: (payload) => {
      if (payload === null || payload === '*') return markAll()
      for (const id of payload.split(' ')) {
        if (topics.has(id)) dirty.add(id)
        if (everything.size > 0) changed.add(id)
      }
      if (dirty.size > 0 || changed.size > 0) wake()
    },
    terminal: (jobId, waitMs, signal) =>
      new Promise((resolve) => {
        const finish = (event: JobEvent | null): void => {
          clearTimeout(timer)
          waiting.delete(aborted)
          stop()
          signal?.removeEventListener('abort', aborted)
          resolve(event)
        }
        const aborted = (): void => finish(null)
        const timer = setTimeout(aborted, waitMs)
        waiting.add(aborted)
        const stop = watchJob(jobId, 0, (events) => {
          const last = events.find(isTerminal)
          if (last !== undefined) finish(last)
        })
        signal?.addEventListener('abort', aborted)
        if (signal?.aborted) aborted()
      }),
    stopWaiting: () => {
      for (const stop of waiting) stop()
    },
    get watchers() {
      return watchers + everything.size
    },
    close: () => clearInterval(poll),
  }
}

/** States of the last moments: longer than what is read again reaches back, and at most two times `MOST_TOLD`. */
interface Told {
  /** Whether this state is later than what was told of its job. From then on it is told. */
  isNews(state: JobEvent): boolean
  hasEnded(jobId: string): boolean
}

const TOLD_MS = POLL_MS + 2 * OVERLAP_MS
const MOST_TOLD = 200_000
/** Greater than the number of any state. */
export const ENDED = Number.POSITIVE_INFINITY

/** The number of a state, as far as its job goes: after a terminal one comes nothing. */
export const rankOf = (state: JobEvent): number => (isTerminal(state) ? ENDED : state.seq)

function createTold(): Told {
  let [recent, before] = [new Map<string, number>(), new Map<string, number>()]
  let turnedAt = Date.now()
  const numberOf = (jobId: string): number => recent.get(jobId) ?? before.get(jobId) ?? -1
  return {
    isNews: (state) => {
      if (numberOf(state.jobId) >= state.seq) return false
      if (Date.now() - turnedAt > TOLD_MS || recent.size >= MOST_TOLD) {
        before = recent
        recent = new Map()
        turnedAt = Date.now()
      }
      recent.set(state.jobId, rankOf(state))
      return true
    },
    hasEnded: (jobId) => numberOf(jobId) === ENDED,
  }
}

/** `from`: the cursor after which the events were read. One who has joined since, further back, waits for its own reading. */
function deliver(subscriber: Subscriber, from: number, events: readonly JobEvent[]): void {
  if (subscriber.after < from) return
  const news = events[0]!.seq > subscriber.after ? events : events.filter(({ seq }) => seq > subscriber.after)
  if (news.length === 0) return
  subscriber.after = news[news.length - 1]!.seq
  subscriber.push(news)
}

/** Lines come ordered by job, then by number. */
function* byJob(events: readonly JobEvent[]): Generator<readonly JobEvent[]> {
  for (let start = 0; start < events.length; ) {
    let end = start + 1
    while (end < events.length && events[end]!.jobId === events[start]!.jobId) end++
    yield events.slice(start, end)
    start = end
  }
}

/** A text of its own: a slice keeps all of the text alive that it was cut from, and ids are remembered for long. */
const own = (slice: string): string => Buffer.from(slice, 'latin1').toString('latin1')

/** A line of `sql/jobs.ts`: job id, number, kind, status, owner, frame, with tabs between. */
export function parseLine(line: string): JobEvent {
  const fields: string[] = []
  let from = 0
  for (let i = 0; i < 5; i++) {
    const tab = line.indexOf('\t', from)
    fields.push(line.slice(from, tab))
    from = tab + 1
  }
  const [jobId = '', seq = '', kind = '', status = '', owner = ''] = fields
  return {
    jobId: own(jobId),
    seq: Number(seq),
    kind,
    status,
    ownerId: owner === '' ? null : Number(owner),
    frame: compact(line.slice(from)),
  }
}
