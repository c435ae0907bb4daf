import { readCurrentStates, readLiveMemberIds } from '../../sql/jobs/events.ts'
import type { JobRetention } from '../../sql/jobs/jobs.ts'
import { readLiveIds, scopeOf } from '../../sql/jobs/lists.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { type JobSelection, readEndedJobs, type Viewer } from './ended-jobs.ts'
import { END_ID, type FollowAllOptions, followAllJobs } from './follow-all.ts'
import type { Hub } from './hub.ts'
import { isTerminal, type JobEvent, parseJobEvent } from './job-event.ts'
import type { StreamSource } from './sse.ts'

/** Sources of streams of several jobs: all of a selection, named ones until they have ended, or a batch. */

/** A subscriber and its reads. */
export interface Subscription {
  readonly viewer: Viewer
  /** Id of the last event that the subscriber has received; '' for none. */
  readonly lastEventId: string
  /** The database's time in ms. */
  readonly now: number
  /** Reads by key. */
  readonly reader: Pick<Reads, 'texts'>
  /** Reads that can return many rows. */
  readonly listReader: Pick<Reads, 'texts'>
  readonly onError: (error: unknown) => void
}

const canSee = ([accountId, everything]: Viewer, { ownerId }: JobEvent): boolean =>
  everything || ownerId === null || ownerId === accountId

/** True if the state belongs to the selection, apart from its ids. */
export const isSelected = ({ batch, queue, task }: JobSelection, state: JobEvent): boolean =>
  (batch === undefined || state.batchId === batch) &&
  (queue === undefined || state.queue === queue) &&
  (task === undefined || state.task === task)

/** Returns the time of the event after which the subscriber resumes; null for a new stream. */
const readSince = ({ lastEventId, now }: Subscription): number | null =>
  /^\d{1,15}$/.test(lastEventId) ? Math.min(now, Number(lastEventId)) : null

const buildReads = (
  { viewer, reader, listReader, onError }: Subscription,
  selection: JobSelection,
  retention: JobRetention | null = null,
): Pick<FollowAllOptions, 'readEndedPage' | 'readStates' | 'onError'> => ({
  readEndedPage: (after) => readEndedJobs(listReader, viewer, after, retention, selection),
  readStates: (ids) => reader.texts(readCurrentStates, [ids]),
  onError,
})

/**
 * Follows the jobs of a selection that the subscriber may see, without an end. A resumed stream omits jobs that ended
 * longer ago than the retention.
 */
export function followSelectedJobs(
  hub: Hub,
  subscription: Subscription,
  selection: JobSelection,
  retention: JobRetention,
): Exclude<StreamSource, 'ended'> {
  const { viewer, now, listReader } = subscription
  const [accountId, everything] = viewer
  const { batch, queue = null, task = null } = selection
  const since = readSince(subscription)
  return followAllJobs(hub, {
    ...buildReads(subscription, selection, retention),
    includes: (state) => canSee(viewer, state) && isSelected(selection, state),
    since: since === null ? null : Math.max(since, now - Math.max(...retention) * 1000),
    readLiveIds: () =>
      batch === undefined
        ? listReader.texts(readLiveIds[scopeOf(everything)], [accountId, queue, task])
        : listReader.texts(readLiveMemberIds, [...viewer, batch]),
  })
}

/** The current state of a job, and the time of its end in ms; null if it has not ended. */
export interface NamedJob {
  readonly state: JobEvent
  readonly endedAt: number | null
}

/** Parses a line of `readVisibleStates`. */
export function parseNamedJob(line: string): NamedJob {
  const tab = line.indexOf('\t')
  return { state: parseJobEvent(line.slice(tab + 1)), endedAt: tab === 0 ? null : Number(line.slice(0, tab)) }
}

/**
 * Follows jobs, which the subscriber may see, from their current states to their ends. A new stream begins with all
 * states; a resumed one omits jobs whose end has been sent.
 */
export function followNamedJobs(
  hub: Hub,
  subscription: Subscription,
  jobs: readonly NamedJob[],
): StreamSource {
  const hasAllEnded = jobs.every(({ endedAt }) => endedAt !== null)
  const since = hasAllEnded && subscription.lastEventId === END_ID ? Infinity : (readSince(subscription) ?? 0)
  const left = jobs.filter(({ endedAt }) => endedAt === null || endedAt >= since)
  const ids = left.map(({ state }) => state.jobId)
  if (ids.length === 0) return 'ended'
  const named = new Set(ids)
  return followAllJobs(hub, {
    ...buildReads(subscription, { ids }),
    includes: ({ jobId }) => named.has(jobId),
    named: ids,
    since,
    readLiveIds: async () => left.filter(({ endedAt }) => endedAt === null).map(({ state }) => state.jobId),
  })
}

/**
 * Follows a batch, which the subscriber may see: its progress, the end of each member, then its own end as the last
 * frame. `batch` is its current state.
 */
export function followBatch(hub: Hub, subscription: Subscription, batch: JobEvent): StreamSource {
  const { jobId } = batch
  if (isTerminal(batch) && subscription.lastEventId === END_ID) return 'ended'
  return followAllJobs(hub, {
    ...buildReads(subscription, { batch: jobId }),
    includes: (state) =>
      state.jobId === jobId ||
      (state.batchId === jobId && isTerminal(state) && canSee(subscription.viewer, state)),
    nameOf: (state) => (state.jobId === jobId && !isTerminal(state) ? 'progress' : 'status'),
    named: [jobId],
    last: jobId,
    since: readSince(subscription) ?? 0,
    readLiveIds: async () => [jobId],
  })
}
