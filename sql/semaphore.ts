/** Lets a fixed number of callers run at a time; the others wait in order. */
export interface Semaphore {
  run<T>(work: () => Promise<T>): Promise<T>
  readonly active: number
  readonly waiting: number
}

export function createSemaphore(places: number): Semaphore {
  // Consumed by a moving head: shifting an array of thousands moves them all.
  let queue: (() => void)[] = []
  let head = 0
  let active = 0

  const release = (): void => {
    const next = queue[head]
    if (next !== undefined) head++
    if (head >= queue.length) {
      queue = []
      head = 0
    }
    // A place is passed on to the next caller and never free in between: nobody overtakes.
    if (next === undefined) active--
    else next()
  }

  return {
    run: async (work) => {
      if (active < places) active++
      else await new Promise<void>((resolve) => queue.push(resolve))
      try {
        return await work()
      } finally {
        release()
      }
    },
    get active() {
      return active
    },
    get waiting() {
      return queue.length - head
    },
  }
}
