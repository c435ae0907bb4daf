import { type Failure, fail } from '../../../sql/errors.ts'
import type { Caller } from './auth.ts'

/** Scopes of API keys, by area and verb. `write` includes `read`, and `*` means every area. */

const VERBS = ['read', 'write'] as const

const scopedAreas = new Set<string>()

// Scopes with a verb of their own, which routes name.
const namedScopes = new Set<string>()

/** Adds a scope that routes name instead of those of their area. */
export function addNamedScope(scope: string): void {
  namedScopes.add(scope)
}

/** Adds the scopes of an area. `area` calls it for each area whose routes need a credential. */
export function addScopes(area: string): void {
  scopedAreas.add(area)
}

/** Returns every scope, `*` first. The list is complete once all areas are declared. */
export function listScopes(): string[] {
  const byArea = ['*', ...[...scopedAreas].sort()].flatMap((area) => VERBS.map((verb) => `${area}:${verb}`))
  return [...byArea, ...[...namedScopes].sort()]
}

/** Returns the scopes that allow reading or writing in an area, narrowest first. */
const listAreaScopes = (area: string, isReading: boolean): readonly string[] => {
  const writing = [`${area}:write`, '*:write']
  return isReading ? [`${area}:read`, '*:read', ...writing] : writing
}

/** The part of a route that determines its scopes. */
interface ScopedRoute {
  readonly method: string
  readonly costsMoney?: boolean
  readonly isRead?: boolean
  /** Scope that replaces those of the area; `*:write` includes it. */
  readonly scope?: string
}

/** Returns the scopes that give access to a route, narrowest first. */
export function listAdmittingScopes(
  { name }: { readonly name: string },
  route: ScopedRoute,
): readonly string[] {
  if (route.scope !== undefined) return [route.scope, '*:write']
  const isReading = route.method === 'get' ? route.costsMoney !== true : route.isRead === true
  return listAreaScopes(name, isReading)
}

/** Returns the failure of an API key without a scope. */
export const failMissingScope = (scope: string): Failure => fail('auth.scope', { scope }, { scope })

/**
 * Requires that an API key may also act in another area.
 * @throws fail('auth.scope') if the key lacks that area's scope.
 */
export function requireScope(caller: Pick<Caller, 'key'>, area: string, verb: 'read' | 'write'): void {
  if (!hasScope(caller, area, verb)) throw failMissingScope(listAreaScopes(area, verb === 'read')[0]!)
}

/** True if an API key may also act in another area. */
export function hasScope({ key }: Pick<Caller, 'key'>, area: string, verb: 'read' | 'write'): boolean {
  if (!scopedAreas.has(area)) throw new Error(`Unknown area with scopes: ${area}`)
  return key === null || listAreaScopes(area, verb === 'read').some((scope) => key.scopes.has(scope))
}
