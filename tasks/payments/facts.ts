/**
 * Facts as the database joins them: name -> [stamp, value]. Of two values of a fact the one with the greater stamp
 * holds, and of equal stamps the greater value; so whoever makes a stamp decides which of two statements is the later
 * word, and the order in which they arrive decides nothing.
 */
export type Facts = Readonly<Record<string, Fact>>
export type Fact = readonly [stamp: string, value: unknown]

/** What was said about one thing, as `payment_apply` takes it. */
export type Change =
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'transaction'; readonly ids: readonly string[]; readonly facts: Facts }
  | {
      readonly kind: 'refund'
      readonly id: string
      /** Of the payment. */
      readonly ids: readonly string[]
      /** The job that asked for it. */
      readonly request: string | null
      readonly facts: Facts
    }
  | { readonly kind: 'subscription'; readonly id: string; readonly facts: Facts }
  | {
      readonly kind: 'dispute'
      readonly id: string
      /** Of the payment. */
      readonly ids: readonly string[]
      readonly facts: Facts
    }

// Amounts and times in seconds have at most this many digits.
const DIGITS = 16

/** A stamp of numbers from 0 on; the first one counts most. */
export function stamp(...parts: readonly number[]): string {
  return parts.map((part) => String(Math.max(0, part)).padStart(DIGITS, '0')).join(':')
}

/** A stamp under which the earliest of several times holds. */
export function earliest(seconds: number): string {
  return stamp(10 ** (DIGITS - 1) - seconds)
}

/** Leaves out what nothing is known of. */
export function facts(given: Readonly<Record<string, Fact | null>>): Facts {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, Fact] => entry[1] !== null),
  )
}

/** A fact about which there is only one thing to say, if any. */
export function known(stamped: string, value: unknown): Fact | null {
  return value === null || value === undefined ? null : [stamped, value]
}
