import { MAX_ENDED_PER_READ, readEndedJobIds } from '../../sql/jobs/jobs.ts'
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

const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** A caller who reads lists of jobs; `everything` is true if the caller may see all jobs. */
export type Viewer = readonly [accountId: number | null, everything: boolean]

/** Reads the next page of ended jobs that are visible to the viewer. */
export async function readEndedJobs(
  reader: Pick<Reads, 'texts'>,
  viewer: Viewer,
  after: EndedJobsCursor,
): Promise<EndedJobsPage> {
  const lines = await reader.texts(readEndedJobIds, [...viewer, after.ms, after.jobId ?? NIL_UUID])
  const ended = lines.map((line) => line.split('\t') as [id: string, ms: string, visible: string])
  const [jobId, ms] = ended[MAX_ENDED_PER_READ - 1] ?? []
  return {
    ids: ended.flatMap(([id, , visible]) => (visible === '1' ? id : [])),
    next: jobId === undefined ? null : { ms: Number(ms), jobId },
  }
}
