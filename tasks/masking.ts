/** Masks what nobody should read on a job's page or in a log of it. */

export const MASK = '***'

// The last word of a name decides: `sealedPassword`, `api_key`, `X-Token`; but not `max_tokens` and `key_points`.
const SECRET = new Set(['password', 'token', 'secret', 'key', 'authorization'])

const lastWord = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
    .at(-1)
    ?.toLowerCase() ?? ''

/**
 * A copy of a JSON value with `***` in place of each secret: at the given paths, and wherever a key's name says so. A path is
 * made of keys, such as `smtp.password`; those of an array's elements follow that of the array. A secret that is null stays null.
 */
export function masked(value: unknown, secrets: readonly string[] = []): unknown {
  return maskedAt(value, new Set(secrets), '')
}

function maskedAt(value: unknown, secrets: ReadonlySet<string>, path: string): unknown {
  if (Array.isArray(value)) return value.map((item) => maskedAt(item, secrets, path))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const at = path === '' ? key : `${path}.${key}`
      const isSecret = secrets.has(at) || SECRET.has(lastWord(key))
      return [key, isSecret && inner !== null ? MASK : maskedAt(inner, secrets, at)]
    }),
  )
}
