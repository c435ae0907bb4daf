import { ENDS_AT_ONCE, readEndedIds } from '../../sql/jobs.ts'
import type { Reads } from '../../sql/slow-reads.ts'

/** A position among the ended jobs. */
export interface EndedAfter {
  /** When it ended, in ms since the epoch, to the microsecond. */
  readonly ms: number
  /** The last job read of those that ended at that time; null: none has been read. */
  readonly jobId: string | null
}

/** Ids of jobs in the order in which they ended, and where to continue; null: there are no more for now. */
export interface EndedJobs {
  readonly ids: readonly string[]
  readonly next: EndedAfter | null
}

const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'

/** The viewer: an account, and whether everything is visible to it. */
export type Viewer = readonly [accountId: number | null, everything: boolean]

/** The next ended jobs that the viewer may see. */
export async function readEnded(
  reader: Pick<Reads, 'texts'>,
  viewer: Viewer,
  after: EndedAfter,
): Promise<EndedJobs> {
  const lines = await reader.texts(readEndedIds, [...viewer, after.ms, after.jobId ?? BEFORE_ALL])
  const ended = lines.map((line) => line.split('\t') as [id: string, ms: string, visible: string])
  const [jobId, ms] = ended[ENDS_AT_ONCE - 1] ?? []
  return {
    ids: ended.flatMap(([id, , visible]) => (visible === '1' ? id : [])),
    next: jobId === undefined ? null : { ms: Number(ms), jobId },
  }
}
