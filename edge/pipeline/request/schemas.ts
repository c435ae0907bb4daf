import { z } from 'zod'

/** Schemas that several areas share. The API reference shows the `type` in the metadata of a URL parameter. */

const buildRowIdSchema = (largest: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a positive integer')
    .transform(Number)
    .refine((id) => id >= 1 && id <= largest, 'must be a positive integer')
    .meta({ type: 'integer', minimum: 1, maximum: largest })

/** A 32-bit id in a path, such as that of an account, an organization or a page. */
export const RowId = buildRowIdSchema(2_147_483_647)

/**
 * Formats a number with commas, such as 10,000. `toLocaleString` would load locale data, which takes 10 ms per start.
 */
export const formatNumber = (value: number): string => `${value}`.replace(/\B(?=(\d{3})+$)/g, ',')

/** A 53-bit id in a path, for all records whose ids may exceed 32 bits. */
export const LongRowId = buildRowIdSchema(Number.MAX_SAFE_INTEGER)

interface Bounds {
  readonly min: number
  readonly max: number
}

/** Returns the schema of an integer in a query string. Values out of bounds are rejected, not clamped. */
export const integer = ({ min, max }: Bounds) =>
  z
    .string()
    .regex(/^-?\d{1,10}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .meta({ type: 'integer', minimum: min, maximum: max })

export const count = ({ fallback, ...bounds }: Bounds & { readonly fallback: number }) =>
  integer(bounds).default(fallback)

/** Returns the schema of a boolean in a query string, which also accepts 1, 0, yes, no, on and off. */
export const flag = () => z.stringbool().meta({ type: 'boolean' })

/** Returns the schema of a flag that defaults to false. */
export const option = () => flag().default(false)

export const Timestamp = z.iso.datetime()

// A date; PostgreSQL's calendar has no year 0.
export const Day = z.iso
  .date({ error: 'must be a day such as 2026-03-14' })
  .refine((date) => date >= '0001', 'must be in the year 1 or later')

// Excludes offsets of 16 hours or more, and overlong texts, because PostgreSQL rejects them.
const STORABLE_MOMENT = /^(?!0000).{1,40}(?<![+-](1[6-9]|2\d):?\d\d)$/

/** A timestamp in a request, in UTC unless it has an offset. */
export const Moment = z.iso
  .datetime({ offset: true, local: true, error: 'must be a time such as 2026-03-14T15:00:00Z' })
  .refine((text) => STORABLE_MOMENT.test(text), 'must be a valid timestamp')
  .transform((text) => (/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`))
  .meta({ format: 'date-time' })

/** An email address, trimmed and in lower case. */
export const Email = z.string().trim().toLowerCase().max(320).pipe(z.email())

/** The body of every error. */
export const Problem = z
  .object({
    detail: z.string().meta({ description: 'Message for people' }),
    errors: z
      .array(z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() }))
      .optional(),
    code: z
      .string()
      .meta({ description: 'Stable name of the error for programs, such as `request.invalid`' }),
  })
  .meta({ id: 'Problem' })

export const Accepted = z.strictObject({ job_id: z.uuid() }).meta({ id: 'Accepted' })
