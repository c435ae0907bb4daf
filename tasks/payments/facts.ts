/**
 * Facts by name. When `payment_join` merges two facts, the one with the greater stamp wins. If the stamps are equal,
 * the greater value wins. The order in which facts arrive does not matter.
 */
export type Facts = Readonly<Record<string, Fact>>
export type Fact = readonly [stamp: string, value: unknown]

/** Reported facts about one object, in the input format of `payment_apply`. */
export type Change =
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'transaction'; readonly ids: readonly string[]; readonly facts: Facts }
  | {
      readonly kind: 'refund'
      readonly id: string
      /** Ids of the refunded payment. */
      readonly ids: readonly string[]
      /** The job that requested the refund; null for refunds made outside Millrace. */
      readonly request: string | null
      readonly facts: Facts
    }
  | { readonly kind: 'subscription'; readonly id: string; readonly facts: Facts }
  | {
      readonly kind: 'dispute'
      readonly id: string
      /** Ids of the disputed payment. */
      readonly ids: readonly string[]
      readonly facts: Facts
    }

// Enough digits for amounts and for times in seconds. Padding to this length makes stamps comparable as text.
const STAMP_DIGITS = 16

/** Creates a stamp from non-negative numbers; the first is the most significant. Negative numbers count as 0. */
export function createStamp(...parts: readonly number[]): string {
  return parts.map((part) => String(Math.max(0, part)).padStart(STAMP_DIGITS, '0')).join(':')
}

/** Creates a stamp that makes the earliest time win. */
export function createEarliestStamp(seconds: number): string {
  return createStamp(10 ** (STAMP_DIGITS - 1) - seconds)
}

/** Removes the facts that are null, because their values are unknown. */
export function omitUnknownFacts(facts: Readonly<Record<string, Fact | null>>): Facts {
  return Object.fromEntries(
    Object.entries(facts).filter((entry): entry is [string, Fact] => entry[1] !== null),
  )
}

/** Creates a fact; null if its value is unknown. */
export function createFact(at: string, value: unknown): Fact | null {
  return value === null || value === undefined ? null : [at, value]
}
