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
    budget: z
      .object({
        holder: z.enum(['account', 'key']),
        kind: z.string(),
        limit: z.number(),
        used: z.number(),
        reserved: z.number(),
        left: z.number(),
        resets_at: Timestamp,
        resets_in_seconds: z.int(),
      })
      .optional()
      .meta({ description: 'The budget of AI usage that the request would exceed' }),
    error: z
      .object({
        message: z.string(),
        type: z.string(),
        param: z.string().nullable(),
        code: z.string(),
      })
      .optional()
      .meta({ description: "The error in OpenAI's protocol, for its routes alone" }),
  })
  .meta({ id: 'Problem' })

export const Accepted = z.strictObject({ job_id: z.uuid() }).meta({ id: 'Accepted' })

type Json = Record<string, unknown>

/**
 * Removes optional fields that are null from a body, because generated clients send null for absent fields. In a
 * nullable field, null is a value, for example to clear the field.
 */
export function omitNulls(schema: z.ZodType, value: unknown): unknown {
  if (value === null) return isOmissible(schema) ? undefined : value
  const inner = unwrap(schema)
  if (inner instanceof z.ZodArray && Array.isArray(value))
    return value.map((item) => omitNulls(inner.element as z.ZodType, item))
  if (!(inner instanceof z.ZodObject) || typeof value !== 'object' || Array.isArray(value)) return value
  const shape = inner.shape as Readonly<Record<string, z.ZodType>>
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      if (!Object.hasOwn(shape, key)) return [[key, item]]
      const given = omitNulls(shape[key]!, item)
      return given === undefined ? [] : [[key, given]]
    }),
  )
}

const omissibleCache = new WeakMap<z.ZodType, boolean>()

/** True if a field may be absent and null is not one of its values. */
function isOmissible(schema: z.ZodType): boolean {
  const found = omissibleCache.get(schema) ?? (acceptsValue(schema, undefined) && !acceptsValue(schema, null))
  omissibleCache.set(schema, found)
  return found
}

const acceptsValue = (schema: z.ZodType, value: null | undefined): boolean => schema.safeParse(value).success

/** Returns the inner schema of an optional, nullable, defaulted or transformed one. */
export function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return unwrap(schema.def.innerType as z.ZodType)
  return schema instanceof z.ZodPipe ? unwrap(schema.def.in as z.ZodType) : schema
}

/** Marks optional fields as nullable in the JSON Schema of a body. */
export function markNullable({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: Json }): void {
  if (!(zodSchema instanceof z.ZodObject)) return
  const properties = (jsonSchema.properties ?? {}) as Record<string, Json>
  for (const [key, field] of Object.entries(zodSchema.shape as Readonly<Record<string, z.ZodType>>)) {
    if (properties[key] === undefined || !isOmissible(field)) continue
    const { default: fallback, description, ...form } = properties[key]
    properties[key] = {
      anyOf: [form, { type: 'null' }],
      ...(fallback === undefined ? {} : { default: fallback }),
      ...(description === undefined ? {} : { description }),
    }
  }
}
