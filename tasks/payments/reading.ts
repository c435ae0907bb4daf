/**
 * Defensive reading of the provider's objects: their shape differs between the versions of its API, and an event has
 * the version of the account that sent it.
 */

export type ProviderObject = Readonly<Record<string, unknown>>

export function objectOf(value: unknown): ProviderObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ProviderObject) : {}
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** The id of a reference, which may have been expanded to the object itself. */
export function idOf(value: unknown): string | null {
  return textOf(value) ?? textOf(objectOf(value).id)
}

/** A whole number that is exact, as amounts and times in seconds are. */
export function wholeOf(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null
}

/** The items of a list, which is an array or an object with its `data`. */
export function itemsOf(value: unknown): readonly ProviderObject[] {
  const items = Array.isArray(value) ? value : objectOf(value).data
  return Array.isArray(items) ? items.map(objectOf) : []
}

/** The ids that are not null, each once. */
export function idsOf(...ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))]
}

/** Whether objects and lists are nested more than `levels` deep. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1))
}

/** JSON that PostgreSQL can store: without NUL and lone surrogates, which JSON itself allows. */
export function storable(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '').toWellFormed()
  if (Array.isArray(value)) return value.map(storable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [storable(key), storable(item)]))
}
