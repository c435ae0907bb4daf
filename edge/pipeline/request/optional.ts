import { z } from 'zod'

/**
 * A `null` for an optional field of a body means that the field is absent, because generated clients send null for
 * absent fields. In a nullable field, null is a value, for example to clear the field.
 */

type Json = Record<string, unknown>

/** Removes optional fields that are null from a body. */
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
