import { type Failure, fail } from '../../sql/errors.ts'
import type { Caller } from './auth.ts'
import type { AnyRoute, Area } from './route.ts'

/** Scopes of API keys, by area and verb. `write` includes `read`; `*` is every area. */

/** Areas with scopes; the others are public. */
export const SCOPED_AREAS = [
  'accounts',
  'ai',
  'blog',
  'comms',
  'documents',
  'jobs',
  'llm',
  'organizations',
  'payments',
  'queues',
  'rag',
  'schedules',
  'system',
  'tasks',
  'voice',
  'webhooks',
  'workers',
] as const

const VERBS = ['read', 'write'] as const

/** Every scope. */
export const SCOPES = ['*', ...SCOPED_AREAS].flatMap((area) => VERBS.map((verb) => `${area}:${verb}`))

/** The scopes that allow reading or writing in an area, narrowest first. */
const scopesOf = (area: string, isReading: boolean): readonly string[] => {
  const writing = [`${area}:write`, '*:write']
  return isReading ? [`${area}:read`, '*:read', ...writing] : writing
}

/** The scopes that admit to a route, narrowest first. */
export function admittingScopes({ name }: Area, route: AnyRoute): readonly string[] {
  const isReading = route.method === 'get' ? route.spends !== true : route.isRead === true
  return scopesOf(name, isReading)
}

/** The refusal of an API key without a scope. */
export const missingScope = (scope: string): Failure => fail('auth.scope', { scope }, { scope })

/**
 * Checks an API key for a request that also acts in another area.
 * @throws fail('auth.scope') if the key lacks that area's scope.
 */
export function requireScope(
  { key }: Pick<Caller, 'key'>,
  area: (typeof SCOPED_AREAS)[number],
  verb: 'read' | 'write',
): void {
  const scopes = scopesOf(area, verb === 'read')
  if (key !== null && !scopes.some((scope) => key.scopes.has(scope))) throw missingScope(scopes[0]!)
}
