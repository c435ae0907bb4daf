import { fail } from '../../../sql/errors.ts'
import type { PieceLimits, RecordingCutter, RecordingPiece } from '../../../tasks/voice/ports.ts'
import {
  type ChildLease,
  ChildLost,
  type Children,
  type Limits,
  retryAfterLoss,
} from '../../children/ports.ts'
import { sendBytes } from '../../children/work.ts'

/** Cuts recordings into pieces, in child processes. */

// A recording of 100 MB takes two seconds, and one of the smallest packets ten.
const CUT_LIMITS: Limits = { cpuMs: 60_000 }
// Between two parts, the child waits for the upload of the first one.
const READ_LIMITS: Limits = { cpuMs: 5000, wallMs: 60_000 }

export const createCutter = (children: Children, childLimits = CUT_LIMITS): RecordingCutter => ({
  cut: async (read, limits, signal) => {
    try {
      return await retryAfterLoss(() => cutOnce(children, childLimits, read, limits, signal))
    } catch (error) {
      if (!(error instanceof ChildLost)) throw error
      throw createUncuttableError(`it ${error.reason(childLimits)}`, limits)
    }
  },
})

const createUncuttableError = (reason: string, { maxBytes: limit }: PieceLimits): Error =>
  fail('voice.audio_too_large', { limit, reason })

async function cutOnce(
  children: Children,
  childLimits: Limits,
  read: () => AsyncIterable<Uint8Array>,
  limits: PieceLimits,
  signal: AbortSignal,
): Promise<RecordingPiece> {
  const lease = await children.lease({ signal })
  try {
    for await (const bytes of read()) await sendBytes(lease, bytes)
    const cut = await lease.ask('audio.cut', limits, childLimits)
    if ('reason' in cut) throw createUncuttableError(cut.reason, limits)
    return { ...cut, pieces: readParts(lease), release: () => lease.release() }
  } catch (error) {
    lease.release()
    throw error
  }
}

async function* readParts(lease: ChildLease): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const part = await lease.ask('audio.read', at, READ_LIMITS)
    if (part.length === 0) break
    at += part.length
    yield part
  }
  lease.release()
}
