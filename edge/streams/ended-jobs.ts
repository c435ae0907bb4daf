import { NIL_UUID } from '../../sql/ids.ts'
import {
  MAX_ENDED_MEMBERS_PER_READ,
  MAX_ENDED_PER_READ,
  readEndedJobIds,
  readEndedMemberIds,
  readEndedNamedIds,
} from '../../sql/jobs/events.ts'
import type { JobRetention } from '../../sql/jobs/jobs.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'

/** A position in the list of ended jobs, which is ordered by end time. */
export interface EndedJobsCursor {
  /** End time in ms since 1970, with microsecond precision. */
  readonly ms: number
  /** Last job read among those that ended at `ms`; null if none was read. */
  readonly jobId: string | null
}

/**
 * Job ids ordered by end time, and the cursor of the next page. The cursor is null if there are no more jobs for now.
 */
export interface EndedJobsPage {
  readonly ids: readonly string[]
  readonly next: EndedJobsCursor | null
}

/** A caller who reads lists of jobs; `everything` is true if the caller may see all jobs. */
export type Viewer = readonly [accountId: number | null, everything: boolean]

/** The jobs to read: those that have all these values, or one of these ids. */
export interface JobSelection {
  readonly ids?: readonly string[] | undefined
  readonly batch?: string | undefined
  readonly queue?: string | undefined
  readonly task?: string | undefined
}

/**
 * Reads the next page of ended jobs that are visible to the viewer; with a retention, only those that it keeps. The page of a batch, or of named jobs, may have jobs
 * of other queues and tasks.
 */
export async function readEndedJobs(
  reader: Pick<Reads, 'texts'>,
  viewer: Viewer,
  after: EndedJobsCursor,
  retention: JobRetention | null,
  { ids, batch, queue, task }: JobSelection = {},
): Promise<EndedJobsPage> {
  const values = [...viewer, after.ms, after.jobId ?? NIL_UUID] as const
  if (ids !== undefined)
    return toPage(await reader.texts(readEndedNamedIds, [...values, ids]), MAX_ENDED_PER_READ)
  if (batch !== undefined)
    return toPage(await reader.texts(readEndedMemberIds, [...values, batch]), MAX_ENDED_MEMBERS_PER_READ)
  return toPage(
    await reader.texts(readEndedJobIds, [...values, queue ?? null, task ?? null, retention]),
    MAX_ENDED_PER_READ,
  )
}

function toPage(lines: readonly string[], limit: number): EndedJobsPage {
  const ended = lines.map((line) => line.split('\t') as [id: string, ms: string, shown: string])
  const [jobId, ms] = ended[limit - 1] ?? []
  return {
    ids: ended.flatMap(([id, , shown]) => (shown === '1' ? id : [])),
    next: jobId === undefined ? null : { ms: Number(ms), jobId },
  }
}
