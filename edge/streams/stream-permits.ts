import { fail } from '../../sql/errors.ts'
import { networkKeyOf } from '../../tasks/platform/addresses.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'

/** Owner of a stream. The stream counts against the owner's quota. */
export interface StreamOwner {
  /** Null without a credential. The stream then counts against the quota of its address. */
  readonly accountId: number | null
  readonly address: string
}

/** Permit within the owner's stream quota. It is acquired before the handler runs and released when the stream ends. */
export interface StreamPermit {
  /** True once a stream holds the permit. The stream then releases the permit at its end. */
  isHeldByStream: boolean
  /** Releases the permit. Further calls have no effect. */
  release(): void
}

/** Acquires a permit, which the caller must pass to a stream or release. @throws fail('stream.limited') */
export type AcquirePermit = (owner: StreamOwner) => StreamPermit

/** Limits the open streams of a process per owner. A limit of 0 means unlimited. */
export function createStreamQuota({ perAddress, perAccount }: Settings['maxStreams']): AcquirePermit {
  const counts = new Map<string, number>()
  return ({ accountId, address }) => {
    const max = accountId === null ? perAddress : perAccount
    const owner = accountId === null ? networkKeyOf(address) : `account ${accountId}`
    const count = counts.get(owner) ?? 0
    if (max > 0 && count >= max) throw fail('stream.limited')
    counts.set(owner, count + 1)
    let isHeld = true
    return {
      isHeldByStream: false,
      release: () => {
        if (!isHeld) return
        isHeld = false
        const remaining = counts.get(owner)! - 1
        if (remaining === 0) counts.delete(owner)
        else counts.set(owner, remaining)
      },
    }
  }
}
