import { timingSafeEqual } from 'node:crypto'
import { fail } from '../sql/errors.ts'
import { digestOf } from '../tasks/accounts/tokens.ts'
import type { Settings } from '../tasks/settings.ts'
import { JSON_BLOCK } from './http/head.ts'
import { commonHeaders, failureBody } from './http/reply.ts'
import { createServer, type EdgeRequest } from './http/server.ts'
import type { Edge } from './pipeline/context.ts'

/**
 * Checks who may read `/metrics` on the main port. With METRICS_TOKEN: its bearer. With only METRICS_PORT: nobody,
 * since anyone who reaches that port may read there. With neither: anyone, but nobody in production.
 * @throws the refusal.
 */
export function admitToMetrics({ metrics, production }: Settings, request: EdgeRequest): void {
  if (metrics.token === undefined) {
    if (production || metrics.port !== undefined) throw fail('route.missing')
    return
  }
  const given = /^Bearer +(\S+) *$/i.exec(request.header('authorization'))?.[1] ?? ''
  // Digests have the same length, whatever was given.
  if (!timingSafeEqual(digestOf(given), digestOf(metrics.token))) throw fail('auth.required')
}

/** Serves `/metrics`, and nothing else, on METRICS_PORT if it is set. @throws when the port is not available. */
export async function serveMetrics(edge: Edge, exclusive: boolean): Promise<{ close(): void }> {
  const { metrics, production, host } = edge.settings
  if (metrics.port === undefined) {
    if (production && metrics.token === undefined)
      edge.log.warn('/metrics is closed: neither METRICS_TOKEN nor METRICS_PORT is set')
    return { close: () => {} }
  }
  const head = (status: number, headers: readonly (readonly [string, string])[]) => ({ status, headers })
  const server = createServer(
    async (request, responder) => {
      const reads = request.method === 'GET' || request.method === 'HEAD'
      if (reads && request.path === '/metrics')
        return (await edge.metrics.text()).send(request, responder, head)
      const body = failureBody(fail('route.missing'))
      responder.send({ status: 404, block: JSON_BLOCK, headers: [], body })
    },
    {
      headers: commonHeaders(edge.settings),
      onError: (error) => edge.log.error({ err: error }, 'Serving the metrics failed'),
    },
  )
  await server.listen({ host, port: metrics.port, exclusive })
  edge.log.info({ port: metrics.port }, '/metrics is served')
  return { close: () => server.close() }
}
