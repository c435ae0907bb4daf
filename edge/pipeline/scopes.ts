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

/** The scopes that admit to a route, the least of them first. */
export function admittingScopes({ name }: Area, route: AnyRoute): readonly string[] {
  const writing = [`${name}:write`, '*:write']
  const isReading = route.method === 'get' ? route.spends !== true : route.isRead === true
  return isReading ? [`${name}:read`, '*:read', ...writing] : writing
}
