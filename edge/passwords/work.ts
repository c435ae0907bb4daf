/** Messages to and from the threads that hash passwords and verify passkeys. */

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

export interface CommonWork {
  /** A password that may be a common one. */
  readonly common: string
}

/** A key of an authenticator; `id` is its name in base64url. */
export interface PasskeyCredential {
  readonly id: string
  /** In COSE's format. */
  readonly publicKey: Uint8Array
  readonly counter: number
}

export interface PasskeyWork {
  readonly kind: 'registration' | 'sign-in'
  /** What the browser answered, as its `toJSON()` has it. */
  readonly response: Readonly<Record<string, unknown>>
  /** In base64url. */
  readonly challenge: string
  readonly origin: string
  readonly rpId: string
  /** For a sign-in. */
  readonly known?: PasskeyCredential
}

/** The credential as it is now, or why it was refused, which no client is told. */
export type PasskeyAnswer =
  | (PasskeyCredential & { readonly isSynced: boolean })
  | { readonly refused: string }

export type Work = PasswordWork | PasskeyWork | CommonWork
export type Result = string | boolean | PasskeyAnswer

/** A thread's reply. */
export type Reply = { readonly result: Result } | { readonly error: string }
