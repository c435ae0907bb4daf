/** Reports slow statements with their origin. */
export interface SlowStatements {
  /** Threshold in ms from which a statement is slow. */
  readonly thresholdMs: number
  /** Returns the request or job that the calling code works for. Called when a statement is sent. */
  origin(): unknown
  report(slow: SlowStatement, origin: unknown): void
}

export interface SlowStatement {
  /** Name of the statement, or the start of its text if it has none. Never contains a value. */
  readonly statement: string
  readonly ms: number
  /** Number of statements in its batch, any of which may be the slow one; absent if it was sent alone. */
  readonly together?: number
}

interface Named {
  readonly name?: string | undefined
  readonly text: string
}

const MAX_CHARACTERS = 80

export const isSlow = ({ thresholdMs }: SlowStatements, ms: number): boolean => ms >= thresholdMs

/** Reports a slow statement that was sent for `origin`. */
export function reportSlow(
  slow: SlowStatements,
  { name, text }: Named,
  ms: number,
  origin: unknown,
  together = 1,
): void {
  const statement = name ?? text.replace(/\s+/g, ' ').trim().slice(0, MAX_CHARACTERS)
  slow.report({ statement, ms: Math.round(ms), ...(together > 1 && { together }) }, origin)
}
