import { createSemaphore, type Semaphore } from '../../sql/semaphore.ts'

/** Work for one key runs one at a time, in order; work for others does not wait for it. */
export class Turns {
  readonly #turns = new Map<string, Semaphore>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key) ?? createSemaphore(1)
    this.#turns.set(key, turn)
    try {
      return await turn.run(work)
    } finally {
      // A turn is handed on: none is active only if none waits.
      if (turn.active === 0) this.#turns.delete(key)
    }
  }
}
