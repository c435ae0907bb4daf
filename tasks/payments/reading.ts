/**
 * Reads the provider's objects defensively. Their shape depends on the version of the provider's API, and events use
 * the version that is set for the provider's account.
 */

export type ProviderObject = Readonly<Record<string, unknown>>

export function objectOf(value: unknown): ProviderObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ProviderObject) : {}
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Returns the id of a reference, which may be expanded to the whole object; null if there is none. */
export function idOf(value: unknown): string | null {
  return textOf(value) ?? textOf(objectOf(value).id)
}

/** Returns a safe integer, such as an amount or a time in seconds; null for any other value. */
export function integerOf(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null
}

/** Returns the items of a list: an array, or an object with an array as its `data`. */
export function itemsOf(value: unknown): readonly ProviderObject[] {
  const items = Array.isArray(value) ? value : objectOf(value).data
  return Array.isArray(items) ? items.map(objectOf) : []
}

/** Returns the distinct ids that are not null. */
export function distinctIds(...ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))]
}

/** True if objects and arrays are nested more than `levels` deep. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}

/** Removes NUL and replaces lone surrogates, which JSON allows but PostgreSQL cannot store. */
export function toStorable(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '').toWellFormed()
  if (Array.isArray(value)) return value.map(toStorable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [toStorable(key), toStorable(item)]))
}
