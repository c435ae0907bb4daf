/**
 * Buffers the pieces of an answer for its subscribers. Sends the first piece immediately. A timer, shared by all
 * answers, sends the later text in batches, so that many streams cause few writes. The timer is aligned to the clock,
 * so that all threads write at the same time.
 */
export interface AnswerBuffer {
  push(text: string): void
  /** Voids all text so far, sent or not. */
  reset(): void
  /** Sends the text that is still buffered. */
  end(): void
  /** Text sent so far. */
  readonly text: string
}

const FLUSH_INTERVAL_MS = 25

const pendingFlushes = new Set<() => void>()
let isFlushScheduled = false

function flushAll(): void {
  isFlushScheduled = false
  for (const flush of pendingFlushes) flush()
  pendingFlushes.clear()
}

/** Creates the buffer of one answer. `send` receives text without NUL and lone surrogates. */
export function createAnswerBuffer(send: (text: string) => void): AnswerBuffer {
  let text = ''
  let pending = ''
  const flush = (last: boolean): void => {
    const incomplete = last ? '' : trailingSurrogateOf(pending)
    const ready = toStorable(pending.slice(0, pending.length - incomplete.length))
    pending = incomplete
    if (ready === '') return
    text += ready
    send(ready)
  }
  const flushPending = (): void => flush(false)
  return {
    push: (piece) => {
      pending += piece
      if (text === '') return flush(false)
      pendingFlushes.add(flushPending)
      if (isFlushScheduled) return
      isFlushScheduled = true
      setTimeout(flushAll, FLUSH_INTERVAL_MS - (Date.now() % FLUSH_INTERVAL_MS))
    },
    reset: () => {
      pendingFlushes.delete(flushPending)
      pending = ''
      text = ''
    },
    end: () => {
      pendingFlushes.delete(flushPending)
      flush(true)
    },
    get text() {
      return text
    },
  }
}

/** Returns the high surrogate at the end of a text, whose low surrogate has not arrived yet; empty if there is none. */
function trailingSurrogateOf(text: string): string {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
}

/** Removes NUL and lone surrogates, which PostgreSQL cannot store in JSON. */
export function toStorable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}
