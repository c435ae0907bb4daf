import { z } from 'zod'
import { listField } from './fields.ts'

/** The settings of the deployment's keys. */

/** Minimum length of SECRET_KEY, in characters. */
export const MIN_SECRET_LENGTH = 32
// A rotation needs one. Each key costs a computation for each wrong token.
const MAX_PREVIOUS_KEYS = 3

export const secretShape = {
  SECRET_KEY: z
    .string()
    .min(MIN_SECRET_LENGTH, `must have at least ${MIN_SECRET_LENGTH} characters`)
    .optional(),
  SECRET_KEYS_PREVIOUS: listField()
    .refine((keys) => keys.length <= MAX_PREVIOUS_KEYS, `must have at most ${MAX_PREVIOUS_KEYS} keys`)
    .refine(
      (keys) => keys.every((key) => key.length >= MIN_SECRET_LENGTH),
      `must be a comma-separated list of keys with at least ${MIN_SECRET_LENGTH} characters each`,
    )
    .default([]),
}

export interface SecretSettings {
  /** Undefined in development, where startup generates a key. */
  readonly secretKey: string | undefined
  /** Other keys that processes accept during a rotation. */
  readonly secretKeysPrevious: readonly string[]
}
