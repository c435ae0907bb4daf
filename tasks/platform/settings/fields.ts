import { z } from 'zod'
import { parseServers } from '../../../sql/connections/hosts.ts'

/** Schemas of settings in the environment. */

/** A rate limit: at most `max` requests of one client in any period of `seconds`. */
export interface RateLimit {
  readonly max: number
  readonly seconds: number
}

/** Defines a whole number from `min` to `max`. */
export const wholeNumberField = (min: number, max: number) =>
  z
    .string()
    .trim()
    .regex(/^-?\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max))

/** Defines a whole number with a default. */
export const countField = (fallback: number, min = 0, max = 1_000_000_000) =>
  wholeNumberField(min, max).default(fallback)

/** Defines a boolean in any of the usual words, such as true, yes or 1. */
export const flagField = (fallback: boolean) => z.stringbool().default(fallback)

/** Returns the items of a comma-separated list. */
export const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)

/** Defines a comma-separated list, restricted to `values` if any are given. */
export const listField = (...values: readonly string[]) =>
  z
    .string()
    .transform(splitList)
    .refine((items) => values.length === 0 || items.every((item) => values.includes(item)), {
      error: `must be a comma-separated list of ${values.join(', ')}`,
    })

/**
 * Defines a comma-separated list of host names, in lower case. `*.example.com` matches all names below it, `*` all
 * hosts.
 */
export const hostsField = () =>
  listField()
    .transform((hosts) => hosts.map((host) => host.toLowerCase()))
    .refine(
      (hosts) =>
        hosts.length > 0 &&
        hosts.every((host) => /^(\*|(\*\.)?[a-z0-9.:[\]-]+)$/.test(host) && !/:\d+$/.test(host)),
      'must be a comma-separated list of host names without ports, such as api.example.com or *.example.com',
    )

/**
 * Defines a rate limit: `REQUESTS/SECONDS`, or `0` for no limit. The number of requests has at most `digits` digits.
 */
export const rateField = (fallback: RateLimit | null, digits = 4) =>
  z
    .string()
    .regex(
      new RegExp(`^(0|[1-9]\\d{0,${digits - 1}}/[1-9]\\d{0,4})$`),
      'must be REQUESTS/SECONDS such as 30/60, or 0 for no limit',
    )
    .transform((text): RateLimit | null => {
      const [given, span] = text.split('/').map(Number)
      return span === undefined ? null : { max: given!, seconds: span }
    })
    .default(fallback)

/** Defines the rate at which requests to a provider start: `STARTS/SECONDS`, or `0`, the default, for no limit. */
export const startRateField = () =>
  rateField(null, 6).refine(
    (rate) => rate === null || rate.seconds <= MAX_RATE_SECONDS,
    `must have at most ${MAX_RATE_SECONDS} seconds`,
  )

// The limit of `start_rate`.
const MAX_RATE_SECONDS = 86_400

/** True if a text is an origin in the form that browsers send. */
export const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

/**
 * Defines a connection string of one or several servers. Rejects a string whose `target_session_attrs` asks for
 * `rejectedRole`.
 */
export const databaseUrlField = (rejectedRole: 'primary' | 'standby') =>
  z.string().superRefine((url, context) => {
    try {
      if (parseServers(url).requiredRole === rejectedRole)
        throw new TypeError(`must not ask for a ${rejectedRole}`)
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message })
    }
  })

/**
 * True if a key repeats a short text, has few different characters, or mostly counts up or down, such as 0123456789.
 */
export function isGuessable(key: string): boolean {
  const half = Math.floor(key.length / 2)
  for (let period = 1; period <= half; period++) if (key.startsWith(key.slice(period))) return true
  const steps = Array.from(key.slice(1), (_, i) => Math.abs(key.charCodeAt(i + 1) - key.charCodeAt(i)))
  // A random key of 32 hexadecimal digits fails either test less than once in a million times.
  return new Set(key).size < 6 || steps.filter((step) => step <= 1).length > (2 / 3) * steps.length
}
