import assert from 'node:assert/strict'
import type { AnyRoute, Area } from '../../edge/pipeline/route.ts'
import type { RequestParts } from './matrix-requests.ts'
import type { Person } from './orgs-help.ts'

/** Builds the requests of `matrix-requests.ts`. */

export const operationOf = ({ prefix }: Area, { method, path }: AnyRoute): string =>
  `${method.toUpperCase()} ${`${prefix}${path}` || '/'}`

/** Builds the HTTP request for an operation as a caller. The request does not wait for a job. */
export function buildRequest(
  operation: string,
  ask: RequestParts,
  who: Pick<Person, 'token'> | null,
): { path: string; init: RequestInit } {
  const [method, pattern] = operation.split(' ') as [string, string]
  const path = pattern.replace(/:(\w+)/g, (_, name: string) => {
    assert.ok(ask.params?.[name] !== undefined, `${operation} needs ${name}: add it to matrix-requests.ts`)
    return encodeURIComponent(ask.params[name])
  })
  const query = new URLSearchParams(
    Object.entries(ask.query ?? {}).map(([key, value]): [string, string] => [key, `${value}`]),
  )
  const body = ask.json === undefined ? ask.body : JSON.stringify(ask.json)
  const headers = {
    prefer: 'respond-async',
    ...(ask.json === undefined ? {} : { 'content-type': 'application/json' }),
    ...(who === null ? {} : { authorization: `Bearer ${who.token}` }),
    ...ask.headers,
  }
  return {
    path: `${path}?${query}`,
    init: {
      method,
      redirect: 'manual',
      headers,
      ...(body === undefined ? {} : { body: body as NonNullable<RequestInit['body']> }),
    },
  }
}
