import { MAX_ENDED_PER_READ, readEndedIds } from '../../sql/jobs.ts'
import type { Reads } from '../../sql/slow-reads.ts'

/** A cursor among the ended jobs. */
export interface EndedCursor {
  /** Time of the end, in ms since 1970, to the microsecond. */
  readonly ms: number
  /** The last job read among those that ended at that time; null if none was read. */
  readonly jobId: string | null
}

/** Ids of jobs in the order of their ends, and the next cursor; null if there are no more for now. */
export interface EndedPage {
  readonly ids: readonly string[]
  readonly next: EndedCursor | null
}

const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** A viewer; `everything` is true if all jobs are visible to it. */
export type Viewer = readonly [accountId: number | null, everything: boolean]

/** Reads the next page of ended jobs that are visible to the viewer. */
export async function readEndedPage(
  reader: Pick<Reads, 'texts'>,
  viewer: Viewer,
  after: EndedCursor,
): Promise<EndedPage> {
  const lines = await reader.texts(readEndedIds, [...viewer, after.ms, after.jobId ?? NIL_UUID])
  const ended = lines.map((line) => line.split('\t') as [id: string, ms: string, visible: string])
  const [jobId, ms] = ended[MAX_ENDED_PER_READ - 1] ?? []
  return {
    ids: ended.flatMap(([id, , visible]) => (visible === '1' ? id : [])),
    next: jobId === undefined ? null : { ms: Number(ms), jobId },
  }
}
