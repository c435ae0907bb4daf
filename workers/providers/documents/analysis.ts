/** Splits files into chunks for retrieval, in child processes. */
import type { NewChunk } from '../../../sql/rag/collections.ts'
import type { AnalysisOptions, AnalysisResult } from '../../../tasks/rag/analyze.ts'
import { ChildLost, type Children, type Limits, retryAfterLoss } from '../../children/ports.ts'
import { sendBytes } from '../../children/work.ts'

// A file of 8 MiB takes two seconds.
const LIMITS: Limits = { cpuMs: 10_000 }

/** Splits a file into chunks. Returns the reason if there are none, such as a timeout or two crashes of the child. */
export async function analyzeFile(
  children: Children,
  bytes: Uint8Array,
  file: AnalysisOptions,
  signal: AbortSignal,
  limits = LIMITS,
): Promise<AnalysisResult> {
  const analyzeOnce = async (): Promise<AnalysisResult> => {
    const lease = await children.lease({ signal })
    try {
      await sendBytes(lease, bytes)
      const opened = await lease.ask('chunks.open', file, limits)
      if ('reason' in opened) return opened
      const chunks: NewChunk[] = []
      while (chunks.length < opened.count)
        chunks.push(...(await lease.ask('chunks.read', chunks.length, limits)))
      return { chunks }
    } finally {
      lease.release()
    }
  }
  try {
    return await retryAfterLoss(analyzeOnce)
  } catch (error) {
    if (!(error instanceof ChildLost)) throw error
    return { reason: `it ${error.reason(limits)}` }
  }
}
