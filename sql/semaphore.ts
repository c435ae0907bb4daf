/** Lets a fixed number of callers run at a time; the others wait in order. */
export interface Semaphore {
  run<T>(work: () => Promise<T>): Promise<T>
  readonly active: number
  readonly waiting: number
}

/** How long a caller waits at most, and the error after that. */
export interface Patience {
  readonly waitMs: number
  readonly late: () => Error
}

/** @param patience without it, callers wait without limit. */
export function createSemaphore(places: number, patience?: Patience): Semaphore {
  return new FairSemaphore(places, patience)
}

interface Waiter {
  enter(): void
  /** Whether the caller has given up. */
  left: boolean
}

class FairSemaphore implements Semaphore {
  active = 0
  readonly #places: number
  readonly #patience: Patience | undefined
  // Taken from by a moving head: shifting an array of thousands moves them all.
  #queue: Waiter[] = []
  #head = 0
  #gone = 0

  constructor(places: number, patience: Patience | undefined) {
    this.#places = places
    this.#patience = patience
  }

  get waiting(): number {
    return this.#queue.length - this.#head - this.#gone
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.active < this.#places) this.active++
    else await this.#turn()
    try {
      return await work()
    } finally {
      this.#release()
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { enter: resolve, left: false }
      this.#queue.push(waiter)
      if (this.#patience === undefined) return
      const { waitMs, late } = this.#patience
      const timer = setTimeout(() => {
        waiter.left = true
        this.#gone++
        reject(late())
      }, waitMs)
      waiter.enter = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #release(): void {
    // A place is handed on, never free in between: nobody overtakes.
    const waiter = this.#next()
    if (waiter === undefined) this.active--
    else waiter.enter()
  }

  #next(): Waiter | undefined {
    let waiter: Waiter | undefined
    do {
      if (waiter !== undefined) this.#gone--
      waiter = this.#queue[this.#head]
      if (waiter !== undefined) this.#head++
    } while (waiter?.left)
    if (this.#head >= this.#queue.length) {
      this.#queue = []
      this.#head = 0
    }
    return waiter
  }
}
