import type { Claimed } from '../sql/jobs.ts'
import type { Room } from '../sql/room.ts'

/** Takes the staged jobs of one lane into a room, whenever there are some and places for them. */
export interface Puller {
  /** There are some, as far as is known. */
  nudge(): void
  /** Takes no more; resolves when no statement that takes is under way. */
  stop(): Promise<void>
}

export interface PullerOptions {
  readonly room: Room
  readonly places: number
  /** Takes at most so many jobs, of owners after one; -1 begins with the first. */
  readonly take: (most: number, afterOwner: number) => Promise<readonly Claimed[]>
  /** Runs one; resolves at its end. */
  readonly run: (job: Claimed) => Promise<void>
  readonly onError: (error: unknown) => void
}

// Enough to amortize a commit; more would only hold row locks longer.
const MOST_TAKEN = 500
// What waits behind a flood may come a few at a time: after a take that found something the next one is soon.
const AGAIN_MS = 25
// So many owners have a share in one take.
const OWNERS_AT_ONCE = 100

export function createPuller({ room, places, take, run, onError }: PullerOptions): Puller {
  // While more is known to wait, few free places of many are not worth a statement.
  const worthwhile = Math.max(1, Math.min(places >> 3, 256))
  let pulling: Promise<void> | null = null
  let again: NodeJS.Timeout | undefined
  let stopped = false
  let more = false
  let afterOwner = -1

  const free = (): number => places - room.inside - room.waiting

  const takeSome = async (): Promise<boolean> => {
    const most = Math.min(free(), MOST_TAKEN)
    const jobs = await take(most, afterOwner)
    const owners = new Set(jobs.map(({ owner_id }) => owner_id ?? 0))
    // After the last of many owners it is the first one's turn again.
    const turned = jobs.length === 0 && afterOwner !== -1
    const someWait = owners.size > 0 && owners.size >= Math.min(most, OWNERS_AT_ONCE)
    afterOwner = someWait ? Math.max(...owners) : -1
    for (const job of jobs) {
      room.admit()
      run(job).then(left, left)
    }
    if (jobs.length > 0) again = setTimeout(nudge, AGAIN_MS)
    return turned || jobs.length > most / 2
  }

  const pull = async (): Promise<void> => {
    clearTimeout(again)
    more = true
    while (more && !stopped && free() > 0) more = await takeSome()
  }

  const left = (): void => {
    room.leave()
    if (more && free() >= worthwhile) nudge()
  }
  const nudge = (): void => {
    if (stopped || pulling !== null || free() < 1) return
    pulling = pull()
      .catch(onError)
      .finally(() => {
        pulling = null
      })
  }

  return {
    nudge,
    stop: async () => {
      stopped = true
      await pulling
      clearTimeout(again)
    },
  }
}
