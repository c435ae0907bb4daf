import type { Edge } from '../context.ts'
import type { RouteEntry } from '../request/match.ts'
import type { RequestContext } from '../request/request-context.ts'
import { Answer } from '../route.ts'

/**
 * Converts the result of a handler to an answer with its status. Tests and development also check it against the
 * route's schema.
 */
export function toCheckedAnswer(edge: Edge, entry: RouteEntry, result: unknown): Answer<unknown> {
  const { route } = entry
  const given = result instanceof Answer ? result : new Answer<unknown>({ value: result })
  const status = given.status ?? route.status ?? (route.response === undefined ? 204 : 200)
  if (edge.settings.validateSchemas && route.response !== undefined && status < 300) {
    const { json, value } = completeAnswer(edge, entry, given)
    route.response.parse(json === undefined ? value : JSON.parse(json))
  }
  return (given.status ?? 200) === status ? given : given.withStatus(status)
}

/** Adds the parts of an answer that are never stored (see `route.addUnstored`). */
export function completeAnswer(edge: Edge, entry: RouteEntry, answer: Answer<unknown>): Answer<unknown> {
  if (entry.route.addUnstored === undefined) return answer
  const { status = 200, headers } = answer
  if (status >= 300) return answer
  return new Answer({ status, headers, json: entry.route.addUnstored(edge, bodyOf(answer)) })
}

/** Sends an answer with the common headers. */
export function sendAnswer(exchange: RequestContext, answer: Answer<unknown>): Promise<void> | void {
  const status = answer.status ?? 200
  const text = bodyOf(answer)
  return text === ''
    ? exchange.sendEmpty(status, answer.headers)
    : exchange.sendJson(status, answer.headers, text)
}

/** Returns the body of an answer; '' if it has none. */
export function bodyOf(answer: Answer<unknown>): string {
  if (answer.json !== undefined) return answer.json
  return answer.value === undefined ? '' : JSON.stringify(answer.value)
}
