import { fail } from '../../sql/errors.ts'
import type { Caller } from './auth.ts'
import type { AnyRoute, Area } from './route.ts'

/** What API keys may do, by area and verb: `write` includes `read`, and `*` is every area. */

/** The areas that scopes name; the others are public. */
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

/** The scopes that admit to what reads or writes in an area, the least of them first. */
const scopesOf = (area: string, isReading: boolean): readonly string[] => {
  const writing = [`${area}:write`, '*:write']
  return isReading ? [`${area}:read`, '*:read', ...writing] : writing
}

/** The scopes that admit to a route, the least of them first. */
export function admittingScopes({ name }: Area, route: AnyRoute): readonly string[] {
  const isReading = route.method === 'get' ? route.spends !== true : route.isRead === true
  return scopesOf(name, isReading)
}

/**
 * Refuses an API key that may not do in another area what its request does there, too.
 * @throws fail('auth.scope')
 */
export function requireScope(
  { key }: Pick<Caller, 'key'>,
  area: (typeof SCOPED_AREAS)[number],
  verb: 'read' | 'write',
): void {
  const scopes = scopesOf(area, verb === 'read')
  if (key !== null && !scopes.some((scope) => key.scopes.has(scope)))
    throw fail('auth.scope', { scope: scopes[0]! })
}
