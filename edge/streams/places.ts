import { fail } from '../../sql/errors.ts'
import { networkOf } from '../../tasks/addresses.ts'
import type { Settings } from '../../tasks/settings.ts'

/** Whose limit a stream counts against. */
export interface StreamOwner {
  /** Null without a credential: counted by address. */
  readonly accountId: number | null
  readonly address: string
}

/** A stream's place within its owner's limit, from before its work begins until it ends. */
export interface Place {
  /** Whether a stream has it, and gives it up when it ends. */
  taken: boolean
  /** Further calls have no effect. */
  giveUp(): void
}

/** @throws fail('stream.limited'). The caller opens a stream with the place or gives it up. */
export type PlaceOf = (owner: StreamOwner) => Place

/** Counts the open streams of a process. */
export function createPlaces({ perAddress, perAccount }: Settings['maxStreams']): PlaceOf {
  const counts = new Map<string, number>()
  return ({ accountId, address }) => {
    const max = accountId === null ? perAddress : perAccount
    const owner = accountId === null ? networkOf(address) : `account ${accountId}`
    const count = counts.get(owner) ?? 0
    if (max > 0 && count >= max) throw fail('stream.limited')
    counts.set(owner, count + 1)
    let given = true
    return {
      taken: false,
      giveUp: () => {
        if (!given) return
        given = false
        const left = counts.get(owner)! - 1
        if (left === 0) counts.delete(owner)
        else counts.set(owner, left)
      },
    }
  }
}
