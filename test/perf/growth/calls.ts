import { areas } from '../../../edge/routes/index.ts'
import { REQUESTS, type RouteRequest } from './requests.ts'
import type { Targets } from './targets.ts'

/** A request to measure. */
export interface Call extends Pick<RouteRequest, 'who' | 'headers' | 'pauseMs'> {
  readonly name: string
  readonly path: string
}

/**
 * Returns all calls of every GET route in the reference. @throws if `requests.ts` lacks arguments for a route or has
 * arguments for an unknown route.
 */
export function listCalls(places: Targets): Call[] {
  const declared = areas.flatMap(({ prefix, routes }) =>
    routes.filter(({ method }) => method === 'get').map(({ path }) => `${prefix}${path}` || '/'),
  )
  const unprepared = declared.filter((path) => REQUESTS[path] === undefined)
  const gone = Object.keys(REQUESTS).filter((path) => !declared.includes(path))
  if (unprepared.length > 0)
    throw new Error(`Add arguments to test/perf/growth/requests.ts for GET ${unprepared.join(', GET ')}`)
  if (gone.length > 0)
    throw new Error(
      `test/perf/growth/requests.ts has arguments for routes that do not exist: GET ${gone.join(', GET ')}`,
    )
  const calls = declared.flatMap((path) => REQUESTS[path]!(places).map((asked) => callOf(path, asked)))
  const twice = calls.find(({ name }, i) => calls.findIndex((other) => other.name === name) !== i)
  if (twice !== undefined) throw new Error(`Two calls are named ${twice.name}`)
  return calls
}

function callOf(pattern: string, { variant, params, query, ...asked }: RouteRequest): Call {
  const path = pattern.replace(/:(\w+)/g, (_, name: string) => {
    const value = params?.[name]
    if (value === undefined || value === null)
      throw new Error(`GET ${pattern} [${variant ?? ''}] has no ${name}`)
    return encodeURIComponent(value)
  })
  const search = new URLSearchParams(
    Object.entries(query ?? {}).map(([key, value]): [string, string] => [key, `${value}`]),
  )
  return {
    ...asked,
    name: `${pattern}${variant === undefined ? '' : ` ${variant}`} [${asked.who}]`,
    path: search.size === 0 ? path : `${path}?${search}`,
  }
}
