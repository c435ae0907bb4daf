/** Statements that take long are told, with what they were for. */
export interface SlowStatements {
  /** A statement that takes as long as this is slow, in ms. */
  readonly fromMs: number
  /** What the code that sends a statement works for. It is asked when the statement is sent. */
  origin(): unknown
  tell(slow: SlowStatement, origin: unknown): void
}

export interface SlowStatement {
  /** Its name, or the beginning of its text if it has none: never a value. */
  readonly statement: string
  readonly ms: number
  /** It was sent together with others, so many in all, and any of them may be the slow one; absent: alone. */
  readonly together?: number
}

interface Named {
  readonly name?: string | undefined
  readonly text: string
}

const MAX_CHARACTERS = 80

export const isSlow = ({ fromMs }: SlowStatements, ms: number): boolean => ms >= fromMs

/** Tells of a statement that was sent for `origin`. */
export function tellSlow(
  slow: SlowStatements,
  { name, text }: Named,
  ms: number,
  origin: unknown,
  together = 1,
): void {
  const statement = name ?? text.replace(/\s+/g, ' ').trim().slice(0, MAX_CHARACTERS)
  slow.tell({ statement, ms: Math.round(ms), ...(together > 1 && { together }) }, origin)
}
