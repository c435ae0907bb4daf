import { ENDS_AT_ONCE, readEndedIds } from '../../sql/jobs.ts'
import type { Reader } from '../../sql/reader.ts'

/** The place of a job among those that have ended. */
export interface EndedAfter {
  /** When it ended, in ms since the epoch, to the microsecond. */
  readonly ms: number
  /** Of several that ended then: which. Null: all of them are still to come. */
  readonly jobId: string | null
}

/** Ids of jobs in the order of their ends, and after which to go on; null: these were the last for now. */
export interface EndedJobs {
  readonly ids: readonly string[]
  readonly next: EndedAfter | null
}

const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'

/** Who asks: an account, and whether everything is visible to it. */
export type Viewer = readonly [accountId: number | null, everything: boolean]

/** Of the next jobs that have ended those that the viewer sees. */
export async function readEnded(reader: Reader, viewer: Viewer, after: EndedAfter): Promise<EndedJobs> {
  const lines = await reader.texts(readEndedIds, [...viewer, after.ms, after.jobId ?? BEFORE_ALL])
  const ended = lines.map((line) => line.split('\t') as [id: string, ms: string, visible: string])
  const [jobId, ms] = ended[ENDS_AT_ONCE - 1] ?? []
  return {
    ids: ended.flatMap(([id, , visible]) => (visible === '1' ? id : [])),
    next: jobId === undefined ? null : { ms: Number(ms), jobId },
  }
}
