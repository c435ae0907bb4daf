import { hashSync, verifySync } from '@node-rs/argon2'
import type { PasswordCost } from './messages.ts'

const ARGON2ID = 2

/** Hashes a password with a new salt. */
export const hashArgon2 = (password: string, cost: PasswordCost): string =>
  hashSync(password, { algorithm: ARGON2ID, parallelism: 1, ...cost })

/** True if the password matches an argon2 hash with any parameters. */
export const verifyArgon2 = (stored: string, password: string): boolean => verifySync(stored, password)
