import { createSemaphore, type Semaphore } from '../../sql/connections/semaphore.ts'

/** A mutex per key. Runs one function per key at a time, in order. Different keys do not wait for each other. */
export class KeyedMutex {
  readonly #turns = new Map<string, Semaphore>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key) ?? createSemaphore(1)
    this.#turns.set(key, turn)
    try {
      return await turn.run(work)
    } finally {
      // release() hands over to the next caller, so 0 active means that no caller waits.
      if (turn.active === 0) this.#turns.delete(key)
    }
  }
}
