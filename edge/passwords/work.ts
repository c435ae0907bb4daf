/** Messages to and from the password hashing threads. */

/** What a new hash costs, and so what guessing costs: KiB of memory, and passes over it. */
export interface PasswordCost {
  readonly memoryCost: number
  readonly timeCost: number
}

export interface PasswordWork {
  readonly password: string
  /** The hash to compare with; absent to compute a new one. */
  readonly against?: string
}

/** A thread's reply. */
export type PasswordAnswer = { readonly result: string | boolean } | { readonly error: string }
