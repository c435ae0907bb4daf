/** What crosses to the threads that hash passwords, and back. */

/** What a new hash costs whoever guesses passwords: KiB of memory, and passes over it. */
export interface PasswordCost {
  readonly memoryCost: number
  readonly timeCost: number
}

export interface PasswordWork {
  readonly password: string
  /** The hash to compare with; absent: a new one is wanted. */
  readonly against?: string
}

/** What a thread answers. */
export type PasswordAnswer = { readonly result: string | boolean } | { readonly error: string }
