/** The JSON Schemas that callers may declare. */

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 40
const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef'])

/** Returns the reason why a schema is refused before it is compiled; null if there is none. */
export function findSchemaFlaw(schema: unknown): string | null {
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null || Array.isArray(schema)))
    return 'must be a JSON Schema: an object or a boolean'
  if (Buffer.byteLength(JSON.stringify(schema)) > MAX_BYTES) return 'must have at most 64 KiB'
  return findFlawIn(schema, 0)
}

function findFlawIn(value: unknown, depth: number): string | null {
  if (typeof value !== 'object' || value === null) return null
  if (depth > MAX_DEPTH) return `must be nested at most ${MAX_DEPTH} deep`
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value) && typeof inner === 'string') {
      if (REFERENCES.has(key) && !inner.startsWith('#')) return `must not refer to another schema: ${key}`
      if (key === '$schema' && inner.replace(/#$/, '') !== DIALECT) return `$schema must be ${DIALECT}`
    }
    // A keyword of the validator that would make its answer a promise.
    if (key === '$async' && inner === true) return 'must not have $async'
    const flaw = findFlawIn(inner, depth + 1)
    if (flaw !== null) return flaw
  }
  return null
}
