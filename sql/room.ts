/** Lets so many in at a time; the others wait in order. */
export interface Room {
  enter<T>(work: () => Promise<T>): Promise<T>
  /** Lets one in without waiting, whoever has counted on a place; it leaves by itself. */
  admit(): void
  leave(): void
  readonly inside: number
  readonly waiting: number
  /** Resolves when nobody is inside, and so nobody waits. */
  emptied(): Promise<void>
}

export function createRoom(places: number): Room {
  // Taken from by a moving head: shifting an array of thousands moves them all.
  let queue: (() => void)[] = []
  let head = 0
  let inside = 0
  let onEmpty: (() => void)[] = []

  const leave = (): void => {
    // Whoever was admitted beyond the places leaves none behind.
    const next = inside > places ? undefined : queue[head]
    if (next !== undefined) head++
    if (head >= queue.length) {
      queue = []
      head = 0
    }
    // A place is handed on, never free in between: nobody overtakes.
    if (next !== undefined) {
      next()
      return
    }
    inside--
    if (inside > 0) return
    for (const resolve of onEmpty) resolve()
    onEmpty = []
  }

  return {
    enter: async (work) => {
      if (inside < places) inside++
      else await new Promise<void>((resolve) => queue.push(resolve))
      try {
        return await work()
      } finally {
        leave()
      }
    },
    admit: () => {
      inside++
    },
    leave,
    get inside() {
      return inside
    },
    get waiting() {
      return queue.length - head
    },
    emptied: () => (inside === 0 ? Promise.resolve() : new Promise((resolve) => onEmpty.push(resolve))),
  }
}
