import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import type { ReadStatement } from '../../sql/reads/reader.ts'
import { listMigrationNames } from '../../sql/server/migrations.ts'
import { PAGE_HEADERS, sendFile } from '../files/static.ts'
import { CachedText } from '../http/cached-text.ts'
import { JSON_SECURITY_POLICY, JSON_TYPE } from '../http/head.ts'
import { requireMetricsAccess } from '../metrics/port.ts'
import { buildOpenApi } from '../openapi/openapi.ts'
import type { Edge } from '../pipeline/context.ts'
import { Answer, type AnyRoute, type Area, answerCompactJson, area, route } from '../pipeline/route.ts'

const SWAGGER = new URL(import.meta.resolve('swagger-ui-dist/swagger-ui.css'))
const PAGES = new URL('../pages/docs/', import.meta.url)

// The only files that /docs serves.
const DOCS_FILES: Readonly<Record<string, URL>> = {
  'swagger-ui.css': SWAGGER,
  'swagger-ui-bundle.js': new URL('swagger-ui-bundle.js', SWAGGER),
  'docs.js': new URL('docs.js', PAGES),
  'docs.css': new URL('docs.css', PAGES),
}

// Swagger UI sets inline styles and draws icons from data URLs. Scripts may come only from this origin.
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const NOT_MODIFIED = { 304: 'The client already has this version' }

const Status = z.strictObject({ status: z.literal('ok') })
const Readiness = z.strictObject({
  status: z.enum(['ready', 'unavailable']),
  database: z.boolean(),
  migrated: z.boolean(),
  admin: z
    .enum(['present', 'missing'])
    .nullable()
    .describe(
      '`missing` until an account is created with the setup link that each start prints. Null if the database is unavailable or not migrated',
    ),
  writable: z.boolean().describe('False on a standby, or while the database is read-only'),
  clock_offset_seconds: z
    .number()
    .describe('How far the database clock, which the service uses, is ahead of the clock of this process'),
  replica: z
    .strictObject({
      state: z.enum(['used', 'away', 'foreign', 'behind']),
      lag_seconds: z.int().nullable().describe('Lag behind the primary; null if unknown'),
    })
    .optional()
    .describe(
      'The replica of `DATABASE_REPLICA_URL`. It serves reads only while `used`; in any other state the primary does',
    ),
})

const READINESS_TIMEOUT_MS = 2_000

let latestMigration: string | null = null
const READ_READY_STATE: ReadStatement<[]> = {
  name: 'ready_state',
  text: `select json_build_object('migration', max(name),
    'has_admin', exists (select from account where role = 'admin' and is_active))::text from migration`,
}

const healthRoute = route({
  method: 'get',
  path: '/health',
  summary: 'Check that the process serves requests',
  response: Status,
  handle: () => answerCompactJson<{ status: 'ok' }>('{"status":"ok"}'),
})

const readinessRoute = route({
  method: 'get',
  path: '/ready',
  summary: 'Check that the database is available and migrated',
  response: Readiness,
  alsoAnswers: { 503: ['Not ready', Readiness] },
  handle: async ({ edge }) => {
    const { state, admin } = await readReadiness(edge)
    const writable = edge.healthCheck.state === 'writable'
    const { replica } = edge
    const ready = state === 'migrated' && writable
    const value = {
      status: ready ? ('ready' as const) : ('unavailable' as const),
      database: state !== 'down',
      migrated: state === 'migrated',
      admin,
      writable,
      clock_offset_seconds: Math.round(edge.healthCheck.clockOffsetMs / 1000),
      ...(replica && { replica: { state: replica.state, lag_seconds: replica.lagSeconds } }),
    }
    return new Answer({ status: ready ? 200 : 503, value })
  },
})

const metricsRoute = route({
  method: 'get',
  path: '/metrics',
  summary: 'Get metrics in the Prometheus text format',
  description: `At most one second old. If \`METRICS_TOKEN\` is set, requires it as the bearer token. Without it, not \
served here in production or if \`METRICS_PORT\` is set.`,
  produces: 'text/plain',
  errors: ['auth.required', 'route.missing'],
  raw: async ({ edge, request, responder, head }) => {
    requireMetricsAccess(edge.settings, request)
    return (await edge.metrics.render()).send(request, responder, head)
  },
})

const docsRoute = route({
  method: 'get',
  path: '/docs',
  summary: 'Show the interactive API reference',
  produces: 'text/html',
  alsoAnswers: NOT_MODIFIED,
  raw: (input) =>
    sendFile(input, new URL('docs.html', PAGES), [['content-security-policy', CSP], ...PAGE_HEADERS]),
})

const docsFileRoute = route({
  method: 'get',
  path: '/docs/:file',
  summary: 'Get an asset of the reference page',
  params: z.object({ file: z.string() }),
  produces: 'text/*',
  errors: ['route.missing'],
  alsoAnswers: NOT_MODIFIED,
  raw: async (input) => {
    const { file } = input.params
    const found = Object.hasOwn(DOCS_FILES, file) ? DOCS_FILES[file] : undefined
    if (found === undefined) throw fail('route.missing')
    return sendFile(input, found, [])
  },
})

/** Declares the health checks, the metrics and the API reference, which covers the result of `areas`. */
export function createOperationsArea(areas: () => readonly Area[]): Area {
  return area('operations', '', { auth: 'public', allowsAnyQuery: true }, [
    healthRoute,
    readinessRoute,
    metricsRoute,
    buildOpenApiDocument(areas),
    docsRoute,
    docsFileRoute,
  ])
}

function buildOpenApiDocument(areas: () => readonly Area[]): AnyRoute {
  // Each edge has its own document, which depends on its settings.
  const documents = new WeakMap<Edge, CachedText>()
  return route({
    method: 'get',
    path: '/openapi.json',
    summary: 'Get this API as an OpenAPI 3.1 document',
    response: z.looseObject({ openapi: z.string() }),
    raw: ({ edge, request, responder, head }) => {
      let document = documents.get(edge)
      if (document === undefined) {
        document = new CachedText(JSON.stringify(buildOpenApi(areas(), edge.settings)), JSON_TYPE)
        documents.set(edge, document)
      }
      return document.send(request, responder, (status, given) =>
        head(status, [...given, JSON_SECURITY_POLICY]),
      )
    },
  })
}

/** Fails when a readiness probe would stop waiting for its answer. */
async function failAfterTimeout(): Promise<never> {
  await delay(READINESS_TIMEOUT_MS, undefined, { ref: false })
  // After a freeze of the process, pending socket reads must run before this timeout fires.
  await nextTurn()
  throw fail('database.down')
}

interface ReadyState {
  readonly state: 'down' | 'unmigrated' | 'migrated'
  readonly admin: 'present' | 'missing' | null
}

async function readReadiness(edge: Edge): Promise<ReadyState> {
  try {
    const text = (await Promise.race([edge.reader.text(READ_READY_STATE, []), failAfterTimeout()]))!
    const { migration, has_admin: hasAdmin } = JSON.parse(text) as StateRow
    latestMigration ??= (await listMigrationNames()).at(-1)!
    // The database may be ahead of this process, because a deployment migrates it first.
    const isMigrated = migration !== null && migration >= latestMigration
    return { state: isMigrated ? 'migrated' : 'unmigrated', admin: hasAdmin ? 'present' : 'missing' }
  } catch (error) {
    edge.log.warn({ err: error }, 'The readiness check failed')
    return { state: (error as { code?: unknown }).code === '42P01' ? 'unmigrated' : 'down', admin: null }
  }
}

interface StateRow {
  readonly migration: string | null
  readonly has_admin: boolean
}
