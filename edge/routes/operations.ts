import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { migrationNames } from '../../sql/migrations.ts'
import type { ReadStatement } from '../../sql/reader.ts'
import { PAGE_HEADERS, sendFile } from '../files.ts'
import { JSON_POLICY, JSON_TYPE } from '../http/head.ts'
import { KeptText } from '../http/kept-text.ts'
import { admitToMetrics } from '../metrics-port.ts'
import { openApi } from '../openapi.ts'
import type { Edge } from '../pipeline/context.ts'
import { Answer, type AnyRoute, type Area, area, route, verbatim } from '../pipeline/route.ts'

const SWAGGER = new URL(import.meta.resolve('swagger-ui-dist/swagger-ui.css'))
const PAGES = new URL('../pages/', import.meta.url)

// The whole of what /docs serves: an allow-list, not a folder.
const FILES: Readonly<Record<string, URL>> = {
  'swagger-ui.css': SWAGGER,
  'swagger-ui-bundle.js': new URL('swagger-ui-bundle.js', SWAGGER),
  'docs.js': new URL('docs.js', PAGES),
  'docs.css': new URL('docs.css', PAGES),
}

// Swagger UI sets styles and draws its icons from data URLs; scripts come from here only.
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const NOT_MODIFIED = { 304: 'The client has this version' }

const Status = z.strictObject({ status: z.literal('ok') })
const Readiness = z.strictObject({
  status: z.enum(['ready', 'unavailable']),
  database: z.boolean(),
  migrated: z.boolean(),
  admin: z
    .enum(['present', 'missing'])
    .nullable()
    .describe(
      '`missing` until somebody follows the setup link that each start prints. Null: the database cannot tell',
    ),
  writable: z.boolean().describe('False of a standby, and while the database is read-only'),
  clock_offset_seconds: z
    .number()
    .describe("How far the database's clock, which is used, is ahead of this process's"),
  replica: z
    .strictObject({
      state: z.enum(['used', 'away', 'foreign', 'behind']),
      behind_bytes: z.int().nullable().describe('WAL that it has not replayed'),
    })
    .optional()
    .describe(
      'The replica of `DATABASE_REPLICA_URL`. Only `used` takes reads; any other state leaves them to the primary',
    ),
})

const READY_MS = 2_000

let latest: string | null = null
const STATE: ReadStatement<[]> = {
  name: 'ready_state',
  text: `select json_build_object('migration', max(name),
    'has_admin', exists (select from account where role = 'admin' and is_active))::text from migration`,
}

const health = route({
  method: 'get',
  path: '/health',
  summary: 'Whether the process serves requests',
  response: Status,
  handle: () => verbatim<{ status: 'ok' }>('{"status":"ok"}'),
})

const readiness = route({
  method: 'get',
  path: '/ready',
  summary: 'Whether the database is there and migrated',
  response: Readiness,
  alsoAnswers: { 503: 'Not ready' },
  handle: async ({ edge }) => {
    const { state, admin } = await readyState(edge)
    const writable = edge.pulse.state === 'writable'
    const reads = edge.replica?.reads
    const ready = state === 'migrated' && writable
    const value = {
      status: ready ? ('ready' as const) : ('unavailable' as const),
      database: state !== 'down',
      migrated: state === 'migrated',
      admin,
      writable,
      clock_offset_seconds: Math.round(edge.pulse.clockOffsetMs / 1000),
      ...(reads && { replica: { state: reads.state, behind_bytes: reads.behind } }),
    }
    return new Answer({ status: ready ? 200 : 503, value })
  },
})

const metrics = route({
  method: 'get',
  path: '/metrics',
  summary: 'Measurements in the text format of Prometheus',
  description: `At most a second old. With \`METRICS_TOKEN\` for its bearer only; in production without it, and with \
\`METRICS_PORT\`, not here.`,
  produces: 'text/plain',
  errors: ['auth.required', 'route.missing'],
  raw: async ({ edge, request, responder, head }) => {
    admitToMetrics(edge.settings, request)
    return (await edge.metrics.text()).send(request, responder, head)
  },
})

const docs = route({
  method: 'get',
  path: '/docs',
  summary: 'The reference, to read and try',
  produces: 'text/html',
  alsoAnswers: NOT_MODIFIED,
  raw: (input) =>
    sendFile(input, new URL('docs.html', PAGES), [['content-security-policy', CSP], ...PAGE_HEADERS]),
})

const docsFile = route({
  method: 'get',
  path: '/docs/:file',
  summary: 'A part of the reference page',
  params: z.object({ file: z.string() }),
  produces: 'text/*',
  errors: ['route.missing'],
  alsoAnswers: NOT_MODIFIED,
  raw: async (input) => {
    const { file } = input.params
    const found = Object.hasOwn(FILES, file) ? FILES[file] : undefined
    if (found === undefined) throw fail('route.missing')
    return sendFile(input, found, [])
  },
})

/** What operators, and readers of the reference, ask for; `areas` are the others, which the reference describes. */
export function operations(areas: () => readonly Area[]): Area {
  return area(
    'operations',
    '',
    { auth: 'public', takesAnyQuery: true, about: 'For operators: health, metrics and this reference.' },
    [health, readiness, metrics, openApiDocument(areas), docs, docsFile],
  )
}

function openApiDocument(areas: () => readonly Area[]): AnyRoute {
  // It names the open areas and the address, so each edge has its own.
  const documents = new WeakMap<Edge, KeptText>()
  return route({
    method: 'get',
    path: '/openapi.json',
    summary: 'This interface as OpenAPI 3.1',
    response: z.looseObject({ openapi: z.string() }),
    raw: ({ edge, request, responder, head }) => {
      let document = documents.get(edge)
      if (document === undefined) {
        document = new KeptText(JSON.stringify(openApi(areas(), edge.settings)), JSON_TYPE)
        documents.set(edge, document)
      }
      return document.send(request, responder, (status, given) => head(status, [...given, JSON_POLICY]))
    },
  })
}

/** Fails after the time in which a readiness probe expects its answer. */
async function late(): Promise<never> {
  await delay(READY_MS, undefined, { ref: false })
  // After a freeze, what has come meanwhile is read first.
  await nextTurn()
  throw fail('database.down')
}

interface ReadyState {
  readonly state: 'down' | 'unmigrated' | 'migrated'
  readonly admin: 'present' | 'missing' | null
}

async function readyState(edge: Edge): Promise<ReadyState> {
  try {
    const text = (await Promise.race([edge.reader.text(STATE, []), late()]))!
    const { migration, has_admin: hasAdmin } = JSON.parse(text) as Stored
    latest ??= (await migrationNames()).at(-1)!
    // A database ahead of this process is fine: migrations come first in a deployment.
    const isMigrated = migration !== null && migration >= latest
    return { state: isMigrated ? 'migrated' : 'unmigrated', admin: hasAdmin ? 'present' : 'missing' }
  } catch (error) {
    edge.log.warn({ err: error }, 'Not ready')
    return { state: (error as { code?: unknown }).code === '42P01' ? 'unmigrated' : 'down', admin: null }
  }
}

interface Stored {
  readonly migration: string | null
  readonly has_admin: boolean
}
