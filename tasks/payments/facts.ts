/**
 * Facts as the database merges them: name -> [stamp, value]. Of two values of a fact the one with the greater stamp
 * wins, and with equal stamps the greater value: the stamps alone decide which of two statements is newer, not the
 * order in which they arrive.
 */
export type Facts = Readonly<Record<string, Fact>>
export type Fact = readonly [stamp: string, value: unknown]

/** What was reported about one object, as `payment_apply` takes it. */
export type Change =
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'transaction'; readonly ids: readonly string[]; readonly facts: Facts }
  | {
      readonly kind: 'refund'
      readonly id: string
      /** Ids of the payment. */
      readonly ids: readonly string[]
      /** The job that requested it. */
      readonly request: string | null
      readonly facts: Facts
    }
  | { readonly kind: 'subscription'; readonly id: string; readonly facts: Facts }
  | {
      readonly kind: 'dispute'
      readonly id: string
      /** Ids of the payment. */
      readonly ids: readonly string[]
      readonly facts: Facts
    }

// Amounts and times in seconds have at most this many digits.
const DIGITS = 16

/** A stamp of numbers from 0 up, the first being the most significant. */
export function stamp(...parts: readonly number[]): string {
  return parts.map((part) => String(Math.max(0, part)).padStart(DIGITS, '0')).join(':')
}

/** A stamp with which the earliest of several times wins. */
export function earliest(seconds: number): string {
  return stamp(10 ** (DIGITS - 1) - seconds)
}

/** Leaves out unknown facts. */
export function facts(given: Readonly<Record<string, Fact | null>>): Facts {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, Fact] => entry[1] !== null),
  )
}

/** A fact, or null when its value is unknown. */
export function known(stamped: string, value: unknown): Fact | null {
  return value === null || value === undefined ? null : [stamped, value]
}
