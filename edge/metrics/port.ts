import { timingSafeEqual } from 'node:crypto'
import { fail } from '../../sql/errors.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { JSON_HEADER_BLOCK } from '../http/head.ts'
import { buildCommonHeaders, formatFailure } from '../http/reply.ts'
import { createServer, type EdgeRequest } from '../http/server.ts'
import type { Edge } from '../pipeline/context.ts'

/**
 * Checks access to `/metrics` on the main port. With METRICS_TOKEN it requires that bearer token. With only
 * METRICS_PORT it rejects all requests, because that port serves the metrics. With neither it rejects all requests in
 * production.
 * @throws fail('route.missing') or fail('auth.required').
 */
export function requireMetricsAccess({ metrics, production }: Settings, request: EdgeRequest): void {
  if (metrics.token === undefined) {
    if (production || metrics.port !== undefined) throw fail('route.missing')
    return
  }
  const given = /^Bearer +(\S+) *$/i.exec(request.header('authorization'))?.[1]
  if (given === undefined) throw fail('auth.required')
  // timingSafeEqual requires equal lengths, which digests always have.
  if (!timingSafeEqual(digestOf(given), digestOf(metrics.token))) throw fail('auth.token_invalid')
}

/** Serves only `/metrics` on METRICS_PORT, if that is set. @throws if the port is unavailable. */
export async function serveMetrics(edge: Edge, exclusive: boolean): Promise<{ close(): void }> {
  const { metrics, production, host } = edge.settings
  if (metrics.port === undefined) {
    if (production && metrics.token === undefined)
      edge.log.warn('/metrics is disabled: set METRICS_TOKEN or METRICS_PORT')
    return { close: () => {} }
  }
  const head = (status: number, headers: readonly (readonly [string, string])[]) => ({ status, headers })
  const server = createServer(
    async (request, responder) => {
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      if (isRead && request.path === '/metrics')
        return (await edge.metrics.render()).send(request, responder, head)
      const body = formatFailure(fail('route.missing'))
      responder.send({ status: 404, block: JSON_HEADER_BLOCK, headers: [], body })
    },
    {
      headers: buildCommonHeaders(edge.settings),
      onError: (error) => edge.log.error({ err: error }, 'Serving metrics failed'),
    },
  )
  await server.listen({ host, port: metrics.port, exclusive })
  edge.log.info({ port: metrics.port }, 'Serving /metrics')
  return { close: () => server.close() }
}
