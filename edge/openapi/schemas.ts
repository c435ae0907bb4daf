import { z } from 'zod'
import { markNullable } from '../pipeline/request/schemas.ts'

/** Converts schemas of zod to those of the reference. */

export type Json = Record<string, unknown>
/** Purpose of a schema: `output` for responses, `input` for parameters, `body` for request bodies. */
export type SchemaUse = 'output' | 'input' | 'body'

/** Converts a schema to JSON Schema 2020-12; types with an id become components. */
export function toSchema(type: z.ZodType, use: SchemaUse, components: Record<string, Json>): Json {
  const {
    $schema: _,
    $defs = {},
    ...schema
  } = z.toJSONSchema(type, {
    io: use === 'output' ? 'output' : 'input',
    unrepresentable: 'any',
    override: (shown) => {
      if (use === 'body') markNullable(shown)
      // A later version may add fields to its answers.
      if (use === 'output' && shown.jsonSchema.additionalProperties === false)
        delete shown.jsonSchema.additionalProperties
      // Tools that compile patterns without the flag `u` misread `\p{…}`.
      if (/\\p\{/i.test(String(shown.jsonSchema.pattern))) delete shown.jsonSchema.pattern
      // openapi-python-client omits operations with an empty object as default. Without a default, the field is still
      // optional.
      if (JSON.stringify(shown.jsonSchema.default) === '{}') delete shown.jsonSchema.default
    },
  }) as Json & { $defs?: Record<string, Json> }
  for (const [name, definition] of Object.entries($defs)) components[name] ??= relinkRefs(definition)
  const id = (schema as { id?: string }).id
  if (id === undefined) return relinkRefs(schema)
  const { id: _id, ...rest } = schema as Json & { id: string }
  components[id] ??= relinkRefs(rest)
  return { $ref: `#/components/schemas/${id}` }
}

function relinkRefs(schema: Json): Json {
  const { id: _, ...rest } = JSON.parse(
    JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'),
  ) as Json
  return rest
}
