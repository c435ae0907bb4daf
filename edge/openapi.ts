import { z } from 'zod'
import { type ErrorCode, errorRow } from '../sql/errors.ts'
import type { Settings } from '../tasks/settings.ts'
import { cookieName } from './http/cookies.ts'
import { exampleOf } from './openapi/examples.ts'
import { TAGS } from './openapi/tags.ts'
import type { Auth } from './pipeline/access.ts'
import { roleFor } from './pipeline/auth.ts'
import { BACKGROUND, CALLBACK_URL } from './pipeline/input.ts'
import { showNulls } from './pipeline/optional.ts'
import { type AnyRoute, type Area, isJobBacked } from './pipeline/route.ts'
import { Accepted, Problem } from './pipeline/schemas.ts'
import { admittingScopes } from './pipeline/scopes.ts'
import { statusOf } from './pipeline/statuses.ts'

/** The OpenAPI 3.1 document of the service, generated from the same schemas that check requests. */

type Json = Record<string, unknown>
/** What a schema is for: a response, parameters, or a body. */
type Use = 'output' | 'input' | 'body'

/** The version of the service itself. */
export const VERSION = '0.1.0'

const DESCRIPTION =
  'A job platform behind a thin HTTP edge. Slow operations run as background jobs: with `?background=true` or `Prefer: respond-async` they return 202 with the job id at once, and the job reports its progress as a stream of server-sent events. Errors are `{detail}`, a message for people; invalid input also lists its problems in `errors`, and what a client acts on has a `code`. Requests for a host that the service does not serve are answered with 421.'
const POSITION =
  'Lists come from a replica, which may lag. Answers to writes, and those that tell of the end of a job, have the header `Millrace-Position`: sent back with a later request, it has lists show at least what was written by then.'

export function openApi(areas: readonly Area[], settings: Settings): Json {
  const components: Record<string, Json> = {}
  const paths: Record<string, Record<string, Json>> = {}
  for (const area of areas) {
    for (const route of area.routes) {
      const path = `${area.prefix}${route.path}`.replace(/:(\w+)/g, '{$1}') || '/'
      paths[path] = { ...paths[path], [route.method]: operation(area, route, settings, components) }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version: VERSION,
      description: settings.databaseReplicaUrl === undefined ? DESCRIPTION : `${DESCRIPTION} ${POSITION}`,
      contact: { name: 'The operator of this service', url: settings.publicBaseUrl },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: settings.publicBaseUrl }],
    tags: [...new Set(areas.map(({ name }) => name))].map((name) => ({
      name,
      ...(TAGS[name] === undefined ? {} : { description: TAGS[name] }),
    })),
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        signIn: {
          type: 'oauth2',
          description: 'Signs in here, for a token of 15 minutes',
          flows: { password: { tokenUrl: '/api/v1/auth/token', scopes: {} } },
        },
        key: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'mill_live_…',
          description: 'An API key with the scope that the operation names, or one that includes it',
        },
        session: { type: 'apiKey', in: 'cookie', name: cookieName(settings, 'session') },
      },
    },
  }
}

function operation(area: Area, route: AnyRoute, settings: Settings, components: Record<string, Json>): Json {
  const auth = route.auth ?? area.auth
  const schema = (type: z.ZodType, use: Use): Json => toSchema(type, use, components)
  const media = (type: z.ZodType, io: Use): Json => {
    const made = schema(type, io)
    const example = exampleOf(made, components)
    return { schema: made, ...(example === undefined ? {} : { example }) }
  }
  const parameters = [
    ...parametersOf(route.params, 'path', schema),
    ...parametersOf(route.query, 'query', schema),
    ...backgroundOf(route),
    ...headersOf(route),
  ]
  return {
    tags: [area.name],
    operationId: operationId(area, route),
    summary: route.summary,
    ...descriptionOf(route, auth, area, settings),
    security: securityOf(auth, area, route, settings),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: {
              [bodyMediaType(route)]: media(route.body, 'body'),
              ...(route.jsonBody === undefined ? {} : { 'application/json': media(route.jsonBody, 'body') }),
            },
          },
        }),
    responses: responsesOf(area, route, auth, settings, media),
  }
}

/** The description of a route, with who may call it where the deployment decides that. */
function descriptionOf(route: AnyRoute, auth: Auth, area: Area, settings: Settings): { description: string } {
  const editors = { rbac: 'For moderators and admins.', basic: 'For any active account.', none: undefined }
  const repeated = route.repeatable && `Keeps no response for an \`Idempotency-Key\`: ${route.repeatable}.`
  const parts = [
    route.description,
    auth === 'editor' ? editors[settings.authLevel] : undefined,
    repeated,
    credentialOf(route, auth, area, settings),
  ]
  return { description: parts.filter((part) => part !== undefined).join(' ') }
}

/** Which credential a route takes, for its description: a tool has no place for the scope of an API key. */
function credentialOf(route: AnyRoute, auth: Auth, area: Area, settings: Settings): string | undefined {
  if (auth === 'public' || settings.authLevel === 'none')
    return route.description === undefined ? 'No credential is needed.' : undefined
  if (route.needsSession) return 'API keys are refused: it is for people who have signed in.'
  return `An API key needs \`${admittingScopes(area, route)[0]!}\`.`
}

function responsesOf(
  area: Area,
  route: AnyRoute,
  auth: Auth,
  settings: Settings,
  media: (type: z.ZodType, use: Use) => Json,
): Json {
  const success = route.status ?? (route.response === undefined && route.produces === undefined ? 204 : 200)
  const json = (type: z.ZodType): Json => ({ 'application/json': media(type, 'output') })
  const refusal = (detail: string): Json => ({
    'application/json': { ...media(Problem, 'output'), example: { detail: detail.replace(/\{\w+\}/g, '…') } },
  })
  const content = {
    ...(route.produces === undefined
      ? {}
      : { [route.produces]: { schema: { type: 'string' }, ...exampleText(route) } }),
    ...(route.response === undefined ? {} : json(route.response)),
  }
  const responses: Record<string, Json> = {
    [success]: {
      description: success === 204 ? 'Success, without a body' : 'Success',
      ...(Object.keys(content).length === 0 ? {} : { content }),
    },
  }
  for (const [status, description] of Object.entries(route.alsoAnswers ?? {})) {
    const schema = status === '202' ? Accepted : Number(status) < 300 ? route.response : undefined
    const body = schema === undefined ? {} : { content: json(schema) }
    responses[status] = { description, ...body }
  }
  if (isJobBacked(route))
    responses[202] = { description: 'The job continues in the background', content: json(Accepted) }
  if (route.stream !== undefined || route.follow !== undefined)
    responses[204] = { description: 'No more events after `Last-Event-ID`' }
  for (const [status, details] of errorsOf(area, route, auth, settings)) {
    responses[status] ??= { description: details.join('; '), content: refusal(details[0]!) }
  }
  const refuses = Object.keys(responses).some((status) => status.startsWith('4'))
  if (!refuses) responses['4XX'] = { description: 'The request could not be read', content: json(Problem) }
  responses['5XX'] ??= {
    description: 'The service failed or is unavailable; `Retry-After`, if present, says when to retry',
    content: refusal('The service is overloaded; try again shortly'),
  }
  return responses
}

function exampleText({ example }: AnyRoute): { example?: string } {
  return example === undefined ? {} : { example }
}

/** Error texts by status: the route's own, and those that follow from its declaration. */
function errorsOf(area: Area, route: AnyRoute, auth: Auth, settings: Settings): Map<number, string[]> {
  const codes = new Set<ErrorCode>(route.errors)
  if (auth !== 'public') codes.add('auth.required')
  if (auth !== 'public') codes.add(route.needsSession ? 'auth.session' : 'auth.scope')
  if (auth !== 'public' && settings.apiKeyRate !== null) codes.add('request.limited')
  if (route.spends) codes.add('request.cross_site')
  if ((auth !== 'public' || route.signsIn) && (route.method !== 'get' || isJobBacked(route)))
    codes.add('request.cross_site')
  if (route.stream !== undefined || route.follow !== undefined) codes.add('stream.limited')
  if (route.limit !== undefined) codes.add('request.limited')
  if (roleFor(auth, settings) !== null) {
    codes.add('auth.forbidden')
    if (settings.requireAdminTotp) codes.add('auth.admin_factor')
  }
  if (!area.takesAnyQuery || route.params !== undefined || route.body !== undefined)
    codes.add('request.invalid')
  if (route.body !== undefined)
    for (const code of ['request.malformed', 'request.media_type', 'request.too_large'] as const)
      codes.add(code)
  if (route.sideEffect)
    for (const code of ['idempotency.mismatch', 'idempotency.running'] as const) codes.add(code)
  if (route.sideEffect && isJobBacked(route)) codes.add('job.missing')
  if (isJobBacked(route)) for (const code of ['job.cancelled', 'internal'] as const) codes.add(code)
  if (isJobBacked(route) && !route.alwaysWaits)
    for (const code of ['request.invalid', 'webhook.no_account'] as const) codes.add(code)
  const byStatus = new Map<number, string[]>()
  for (const code of codes) {
    const row = errorRow(code)
    const status = code === 'request.invalid' ? area.invalidStatus : statusOf(code)
    const detail = code === 'request.invalid' ? 'The input is not valid' : row.detail
    byStatus.set(status, [...(byStatus.get(status) ?? []), detail])
  }
  return byStatus
}

function securityOf(auth: Auth, area: Area, route: AnyRoute, settings: Settings): Json[] {
  if (auth === 'public' || settings.authLevel === 'none') return []
  const key: Json[] = route.needsSession ? [] : [{ key: [] }]
  const credentials: Json[] = [{ bearer: [] }, { signIn: [] }, { session: [] }, ...key]
  return (auth === 'open' || auth === 'operator') && settings.openAreas.has(area.name)
    ? [...credentials, {}]
    : credentials
}

function bodyMediaType(route: AnyRoute): string {
  if (route.bodyType === 'form') return 'application/x-www-form-urlencoded'
  return route.bodyType === 'multipart' ? 'multipart/form-data' : 'application/json'
}

function parametersOf(
  type: z.ZodType | undefined,
  where: 'path' | 'query',
  schema: (type: z.ZodType, io: 'input') => Json,
): Json[] {
  if (type === undefined) return []
  const { properties = {}, required = [] } = schema(type, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema: { ...typed(property), ...fallbackOf(type, name) },
  }))
}

/** The default of a field, which zod does not tell of where a text is turned into another value. */
function fallbackOf(type: z.ZodType, name: string): Json {
  const field = type instanceof z.ZodObject ? (type.shape as Record<string, unknown>)[name] : undefined
  return field instanceof z.ZodDefault ? { default: field.def.defaultValue } : {}
}

/** Without the pattern of the text that stands for a value of another type. */
function typed({ pattern, ...schema }: Json): Json {
  return schema.type === 'string' ? { ...schema, ...(pattern === undefined ? {} : { pattern }) } : schema
}

/** How a job-backed route is asked not to wait. */
function backgroundOf(route: AnyRoute): Json[] {
  if (!isJobBacked(route) || route.alwaysWaits) return []
  const parameter = (name: string, schema: Json, description: string): Json => ({
    name,
    in: 'query',
    required: false,
    description,
    schema,
  })
  return [
    parameter('background', { type: 'boolean' }, BACKGROUND),
    parameter('callback_url', { type: 'string', format: 'uri', maxLength: 2000 }, CALLBACK_URL),
  ]
}

function headersOf(route: AnyRoute): Json[] {
  const header = (name: string, description: string): Json => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  })
  return [
    ...(route.sideEffect
      ? [
          header(
            'Idempotency-Key',
            'The same key and request within 24 hours return the first response, with `Idempotent-Replayed: true`',
          ),
        ]
      : []),
    ...(isJobBacked(route) && !route.alwaysWaits
      ? [header('Prefer', '`respond-async` returns 202 with the job id at once')]
      : []),
    ...(route.stream || route.follow ? [header('Last-Event-ID', 'Resumes the stream after this event')] : []),
  ]
}

function operationId(area: Area, route: AnyRoute): string {
  const words = route.path
    .split('/')
    .filter(Boolean)
    .map((word) => word.replace(/^:/, 'by_').replace(/[^A-Za-z0-9]+/g, '_'))
  return [route.method, area.name, ...words].join('_')
}

/** A schema as JSON Schema 2020-12; types with an id become components. */
function toSchema(type: z.ZodType, use: Use, components: Record<string, Json>): Json {
  const {
    $schema: _,
    $defs = {},
    ...schema
  } = z.toJSONSchema(type, {
    io: use === 'output' ? 'output' : 'input',
    unrepresentable: 'any',
    override: (shown) => {
      if (use === 'body') showNulls(shown)
      // Tools that read a pattern without the flag `u` take a class of characters for letters.
      if (/\\p\{/i.test(String(shown.jsonSchema.pattern))) delete shown.jsonSchema.pattern
      // openapi-python-client leaves out an operation with such a default; without it the field is as optional.
      if (JSON.stringify(shown.jsonSchema.default) === '{}') delete shown.jsonSchema.default
    },
  }) as Json & { $defs?: Record<string, Json> }
  for (const [name, definition] of Object.entries($defs)) components[name] ??= relinked(definition)
  const id = (schema as { id?: string }).id
  if (id === undefined) return relinked(schema)
  const { id: _id, ...rest } = schema as Json & { id: string }
  components[id] ??= relinked(rest)
  return { $ref: `#/components/schemas/${id}` }
}

function relinked(schema: Json): Json {
  const { id: _, ...rest } = JSON.parse(
    JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'),
  ) as Json
  return rest
}
