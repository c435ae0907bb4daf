import { z } from 'zod'

/** Schemas that several areas share. A `type` in the metadata of a string in a URL is its type in the reference. */

const rowId = (largest: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a positive integer')
    .transform(Number)
    .refine((id) => id >= 1 && id <= largest, 'must be a positive integer')
    .meta({ type: 'integer', minimum: 1, maximum: largest })

/** The 32-bit id of an account, an organization or a page, in a path. */
export const RowId = rowId(2_147_483_647)

/** Formats a number with commas: 10,000. `toLocaleString` would load locale data, 10 ms per start. */
export const formatNumber = (value: number): string => `${value}`.replace(/\B(?=(\d{3})+$)/g, ',')

/** The id of any other record, in a path. */
export const LongRowId = rowId(Number.MAX_SAFE_INTEGER)

interface Bounds {
  readonly min: number
  readonly max: number
}

/** An integer in a query string; values out of bounds are refused, not clamped. */
export const integer = ({ min, max }: Bounds) =>
  z
    .string()
    .regex(/^-?\d{1,10}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .meta({ type: 'integer', minimum: min, maximum: max })

export const count = ({ fallback, ...bounds }: Bounds & { readonly fallback: number }) =>
  integer(bounds).default(fallback)

/** True or false in a query string; also 1, 0, yes, no, on and off. */
export const flag = () => z.stringbool().meta({ type: 'boolean' })

/** A flag that defaults to false. */
export const option = () => flag().default(false)

export const Timestamp = z.iso.datetime()

// PostgreSQL's calendar has no year 0.
export const Day = z.iso
  .date({ error: 'must be a day such as 2026-03-14' })
  .refine((date) => date >= '0001', 'must be in the year 1 or later')

// PostgreSQL rejects offsets of 16 hours or more, and overlong texts.
const STORABLE_MOMENT = /^(?!0000).{1,40}(?<![+-](1[6-9]|2\d):?\d\d)$/

/** A timestamp as input; UTC if it has no offset. */
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
