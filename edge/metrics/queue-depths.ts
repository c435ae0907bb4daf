import { MAX_NAMED_SERIES, OTHER_SERIES } from '../../sql/jobs/tallies.ts'
import { queuesOf, tasks } from '../../tasks/index.ts'

/** Numbers of live jobs of a queue, for metrics. */
export interface QueueDepth {
  readonly queue: string
  readonly queued: number
  readonly running: number
  readonly waiting: number
  readonly oldest_seconds: number | null
}

const OWN_QUEUES: ReadonlySet<string> = new Set(queuesOf(tasks))

/**
 * Returns the depths of our own queues, and of the {@link MAX_NAMED_SERIES} other queues with the most jobs. The rest adds
 * up to one entry.
 */
export function boundDepths(depths: readonly QueueDepth[]): readonly QueueDepth[] {
  const own = depths.filter(({ queue }) => OWN_QUEUES.has(queue))
  const others = depths.filter(({ queue }) => !OWN_QUEUES.has(queue))
  if (others.length <= MAX_NAMED_SERIES) return depths
  others.sort((one, other) => countJobs(other) - countJobs(one) || (one.queue < other.queue ? -1 : 1))
  const rest = others.slice(MAX_NAMED_SERIES).reduce(addDepths, EMPTY_REST)
  return [...own, ...others.slice(0, MAX_NAMED_SERIES), rest]
}

const EMPTY_REST: QueueDepth = {
  queue: OTHER_SERIES,
  queued: 0,
  running: 0,
  waiting: 0,
  oldest_seconds: null,
}

const countJobs = ({ queued, running, waiting }: QueueDepth): number => queued + running + waiting

/** Adds a queue to the rest, whose oldest job is the oldest of all. */
function addDepths(rest: QueueDepth, depth: QueueDepth): QueueDepth {
  return {
    queue: rest.queue,
    queued: rest.queued + depth.queued,
    running: rest.running + depth.running,
    waiting: rest.waiting + depth.waiting,
    oldest_seconds: Math.max(rest.oldest_seconds ?? 0, depth.oldest_seconds ?? 0),
  }
}
