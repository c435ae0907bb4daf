/** Cuts files for retrieval in child processes. */
import type { Analyzable, Analyzed } from '../../tasks/rag/analyze.ts'
import { ChildLost, type Children, type Limits } from '../children/ports.ts'
import { sendBytes } from '../children/work.ts'

// A file of 8 MiB takes two seconds.
const LIMITS: Limits = { cpuMs: 10_000 }

/** The pieces of a file; of one that takes too long, or crashes its child twice, the reason why there are none. */
export async function analyzeFile(
  children: Children,
  bytes: Uint8Array,
  file: Analyzable,
  signal: AbortSignal,
  limits = LIMITS,
): Promise<Analyzed> {
  const once = async (): Promise<Analyzed> => {
    const lease = await children.lease({ signal })
    try {
      await sendBytes(lease, bytes)
      return await lease.ask('chunks.read', file, limits)
    } finally {
      lease.release()
    }
  }
  try {
    return await once().catch((error) => {
      if (error instanceof ChildLost && error.why === 'crash') return once()
      throw error
    })
  } catch (error) {
    if (!(error instanceof ChildLost)) throw error
    if (error.why === 'memory') return { reason: 'it needs more memory than there is for one file' }
    if (error.why === 'crash') return { reason: 'it crashes its reader' }
    return { reason: `it takes more than ${Math.round(limits.cpuMs / 1000)} s to be read` }
  }
}
