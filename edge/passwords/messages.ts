/** Messages to and from the threads that hash passwords and verify passkeys. */

/** Cost of computing a hash, and so of guessing a password: memory in KiB and number of passes over it. */
export interface PasswordCost {
  readonly memoryCost: number
  readonly timeCost: number
}

export interface PasswordRequest {
  readonly password: string
  /** Hash to compare the password with. If it is absent, the thread computes a new hash. */
  readonly against?: string
}

export interface CommonPasswordRequest {
  /** Password to look up among the common ones. */
  readonly common: string
}

/** A public key credential of an authenticator; `id` is in base64url. */
export interface PasskeyCredential {
  readonly id: string
  /** Public key in COSE format. */
  readonly publicKey: Uint8Array
  readonly counter: number
}

export interface PasskeyRequest {
  readonly kind: 'registration' | 'sign-in'
  /** The browser's response, as its `toJSON()` returns it. */
  readonly response: Readonly<Record<string, unknown>>
  /** In base64url. */
  readonly challenge: string
  readonly origins: readonly string[]
  readonly rpId: string
  /** The stored credential; absent for a registration. */
  readonly known?: PasskeyCredential
}

/** The new state of the credential, or the reason for rejecting it, which clients do not see. */
export type PasskeyResult =
  | (PasskeyCredential & { readonly isSynced: boolean })
  | { readonly refused: string }

export type ThreadRequest = PasswordRequest | PasskeyRequest | CommonPasswordRequest
export type ThreadResult = string | boolean | PasskeyResult

/** Reply of a thread. */
export type ThreadReply = { readonly result: ThreadResult } | { readonly error: string }
