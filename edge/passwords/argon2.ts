import { hashSync, verifySync } from '@node-rs/argon2'
import type { PasswordCost } from './work.ts'

const ARGON2ID = 2

/** A new hash of a password, with a salt of its own. */
export const hashArgon2 = (password: string, cost: PasswordCost): string =>
  hashSync(password, { algorithm: ARGON2ID, parallelism: 1, ...cost })

/** True if a hash, by whichever parameters, is that of a password. */
export const verifyArgon2 = (stored: string, password: string): boolean => verifySync(stored, password)
