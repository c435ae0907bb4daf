/** Settings and callbacks to report slow statements with their origin. */
export interface SlowStatements {
  /** Statements that take at least this many ms are slow. */
  readonly thresholdMs: number
  /** Returns the current request or job, to which a slow statement is attributed. Called when the statement is sent. */
  origin(): unknown
  report(slow: SlowStatement, origin: unknown): void
}

export interface SlowStatement {
  /** Name of the statement, or else the beginning of its text. Never contains a value. */
  readonly statement: string
  readonly ms: number
  /** Number of statements in the batch, any of which may be the slow one. Absent if the statement was sent alone. */
  readonly together?: number
}

interface NamedStatement {
  readonly name?: string | undefined
  readonly text: string
}

const MAX_STATEMENT_CHARACTERS = 80

export const isSlow = ({ thresholdMs }: SlowStatements, ms: number): boolean => ms >= thresholdMs

/** Reports a slow statement to `slow.report`. */
export function reportSlow(
  slow: SlowStatements,
  { name, text }: NamedStatement,
  ms: number,
  origin: unknown,
  together = 1,
): void {
  const statement = name ?? text.replace(/\s+/g, ' ').trim().slice(0, MAX_STATEMENT_CHARACTERS)
  slow.report({ statement, ms: Math.round(ms), ...(together > 1 && { together }) }, origin)
}
