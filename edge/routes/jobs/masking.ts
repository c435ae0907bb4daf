/** Masks secrets in job pages and job logs. */

export const MASK = '***'

// A key is secret if its last word is in this set: `sealPassword`, `api_key` and `X-Token` are secret; `max_tokens` and
// `key_points` are not.
const SECRET_WORDS = new Set(['password', 'token', 'secret', 'key', 'authorization'])

const lastWordOf = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
    .at(-1)
    ?.toLowerCase() ?? ''

/**
 * Copies a JSON value and masks secrets as `***`: values at the given paths, and values under keys whose names denote a
 * secret. A path joins keys with dots, such as `smtp.password`. The elements of an array have the path of the array.
 * Null stays null.
 */
export function maskSecrets(value: unknown, secrets: readonly string[] = []): unknown {
  return maskValueAt(value, new Set(secrets), '')
}

function maskValueAt(value: unknown, secrets: ReadonlySet<string>, path: string): unknown {
  if (Array.isArray(value)) return value.map((item) => maskValueAt(item, secrets, path))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const at = path === '' ? key : `${path}.${key}`
      const isSecret = secrets.has(at) || SECRET_WORDS.has(lastWordOf(key))
      return [key, isSecret && inner !== null ? MASK : maskValueAt(inner, secrets, at)]
    }),
  )
}
