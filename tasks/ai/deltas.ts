/**
 * Pieces of answers on their way to readers. The first piece of an answer is sent at once; after that all answers share
 * a timer that sends what has accumulated: many streams make few writes, and several threads write at the same time.
 */
export interface Deltas {
  push(text: string): void
  /** Sends what is left. */
  end(): void
  /** Everything sent so far: what readers have seen. */
  readonly text: string
}

const COALESCE_MS = 25

const waiting = new Set<() => void>()
let scheduled = false

function flushAll(): void {
  scheduled = false
  for (const flush of waiting) flush()
  waiting.clear()
}

/** `send` gets storable text: without NUL and lone surrogates. */
export function createDeltas(send: (text: string) => void): Deltas {
  let text = ''
  let pending = ''
  const flush = (last: boolean): void => {
    const held = last ? '' : openEnd(pending)
    const ready = storable(pending.slice(0, pending.length - held.length))
    pending = held
    if (ready === '') return
    text += ready
    send(ready)
  }
  const tick = (): void => flush(false)
  return {
    push: (piece) => {
      pending += piece
      if (text === '') return flush(false)
      waiting.add(tick)
      if (scheduled) return
      scheduled = true
      setTimeout(flushAll, COALESCE_MS - (Date.now() % COALESCE_MS))
    },
    end: () => {
      waiting.delete(tick)
      flush(true)
    },
    get text() {
      return text
    },
  }
}

/** A high surrogate at the end, whose other half is yet to come. */
function openEnd(text: string): string {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
}

/** JSON in PostgreSQL can't hold NUL or lone surrogates. */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}
