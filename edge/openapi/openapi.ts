import { z } from 'zod'
import { type ErrorCode, getErrorRow } from '../../sql/errors.ts'
import { MAX_DEPENDENCIES } from '../../sql/jobs/jobs.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { formatCookieName } from '../http/cookies.ts'
import type { Auth } from '../pipeline/access/access.ts'
import { listAdmittingScopes } from '../pipeline/access/scopes.ts'
import { listRefusals } from '../pipeline/answer/refusals.ts'
import { statusOf } from '../pipeline/answer/statuses.ts'
import {
  AFTER_DESCRIPTION,
  AFTER_OUTCOME_DESCRIPTION,
  BACKGROUND_DESCRIPTION,
  CALLBACK_URL_DESCRIPTION,
  LAST_EVENT_ID_DESCRIPTION,
} from '../pipeline/request/input.ts'
import { Accepted, Problem } from '../pipeline/request/schemas.ts'
import { type AnyRoute, type Area, isJobBacked, isResumable } from '../pipeline/route.ts'
import { makeExample } from './examples.ts'
import { readGuide } from './guides.ts'
import { type Json, type SchemaUse, toSchema } from './schemas.ts'
import { buildWebhooks } from './webhooks.ts'

/** Generates the OpenAPI 3.1 document of the service from the schemas that also validate requests. */

export const VERSION = '1.0.1'

const REPLICA_DESCRIPTION =
  '## Replicas\n\nStatistics, searches of admins and exports may come from a replica. They have the header `Age`, which tells how many seconds old they may be.'

const CHALLENGE_HEADER = {
  'WWW-Authenticate': {
    description: 'The cause as `error` and `error_description` (RFC 6750); neither without a credential',
    schema: { type: 'string' },
  },
}

export function buildOpenApi(areas: readonly Area[], settings: Settings): Json {
  const components: Record<string, Json> = {}
  const paths: Record<string, Record<string, Json>> = {}
  for (const area of areas) {
    for (const route of area.routes) {
      const path = `${area.prefix}${route.path}`.replace(/:(\w+)/g, '{$1}') || '/'
      paths[path] = { ...paths[path], [route.method]: buildOperation(area, route, settings, components) }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version: VERSION,
      description:
        settings.databaseReplicaUrl === undefined
          ? readGuide('README')
          : `${readGuide('README')}\n\n${REPLICA_DESCRIPTION}`,
      contact: { name: 'The operator of this service', url: settings.publicBaseUrl },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: settings.publicBaseUrl }],
    tags: listTags(areas),
    paths,
    webhooks: buildWebhooks(components),
    components: {
      schemas: components,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        signIn: {
          type: 'oauth2',
          description: 'Sign in here to get an access token for 15 minutes',
          flows: { password: { tokenUrl: '/api/v1/auth/token', scopes: {} } },
        },
        key: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'mill_live_…',
          description: 'An API key with the scope that the operation requires, or a scope that includes it',
        },
        session: { type: 'apiKey', in: 'cookie', name: formatCookieName(settings, 'session') },
      },
    },
  }
}

/** Returns a tag for each area name, which several areas may share. */
function listTags(areas: readonly Area[]): Json[] {
  return [...new Set(areas.map(({ name }) => name))].map((name) => {
    const description = readGuide(name)
    return { name, ...(description === null ? {} : { description }) }
  })
}

function buildOperation(
  area: Area,
  route: AnyRoute,
  settings: Settings,
  components: Record<string, Json>,
): Json {
  const auth = route.auth ?? area.auth
  const schema = (type: z.ZodType, use: SchemaUse): Json => toSchema(type, use, components)
  const media = (type: z.ZodType, use: SchemaUse): Json => {
    const jsonSchema = schema(type, use)
    const example = makeExample(jsonSchema, components)
    return { schema: jsonSchema, ...(example === undefined ? {} : { example }) }
  }
  const parameters = [
    ...listParameters(route.params, 'path', schema),
    ...listParameters(route.query, 'query', schema),
    ...listBackgroundParameters(route),
    ...listStreamParameters(route),
    ...listHeaderParameters(route),
  ]
  return {
    tags: [area.name],
    operationId: buildOperationId(area, route),
    summary: route.summary,
    ...describeRoute(route, auth, area, settings),
    security: listSecurity(auth, area, route, settings),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: {
              [chooseBodyMediaType(route)]: media(route.body, 'body'),
              ...(route.jsonBody === undefined ? {} : { 'application/json': media(route.jsonBody, 'body') }),
            },
          },
        }),
    responses: buildResponses(area, route, settings, media),
  }
}

/** Describes a route, with the roles and credentials that this deployment requires. */
function describeRoute(route: AnyRoute, auth: Auth, area: Area, settings: Settings): { description: string } {
  const editors = { rbac: 'For moderators and admins.', basic: 'For any active account.', none: undefined }
  const repeated =
    route.whyRepeatable && `Stores no response for an \`Idempotency-Key\`: ${route.whyRepeatable}.`
  const parts = [
    route.description,
    auth === 'editor' ? editors[settings.authLevel] : undefined,
    repeated,
    describeCredential(route, auth, area, settings),
  ]
  return { description: parts.filter((part) => part !== undefined).join(' ') }
}

/** Describes in words the credential that a route requires, because OpenAPI cannot express scopes of bearer tokens. */
function describeCredential(route: AnyRoute, auth: Auth, area: Area, settings: Settings): string | undefined {
  if (auth === 'public' || settings.authLevel === 'none')
    return route.description === undefined ? 'No credential is needed.' : undefined
  if (route.needsSession) return 'API keys are rejected: this operation requires a signed-in user.'
  return `An API key needs the scope \`${listAdmittingScopes(area, route)[0]!}\`.`
}

function buildResponses(
  area: Area,
  route: AnyRoute,
  settings: Settings,
  media: (type: z.ZodType, use: SchemaUse) => Json,
): Json {
  const success = route.status ?? (route.response === undefined && route.produces === undefined ? 204 : 200)
  const json = (type: z.ZodType): Json => ({ 'application/json': media(type, 'output') })
  const refusal = (status: number, refusals: readonly ErrorResponse[]): Json => {
    const { schema } = media(Problem, 'output') as { schema: Json }
    const [{ detail, code }] = refusals as [ErrorResponse]
    const example = { detail: detail.replace(/\{\w+\}/g, '…'), code }
    // Other layers and providers fail with codes of their own, which no route lists.
    if (status >= 500) return { 'application/json': { schema, example } }
    const codes = [...new Set(refusals.map((each) => each.code))]
    // Keywords next to `$ref` are allowed since OpenAPI 3.1; older tools ignore them.
    return { 'application/json': { schema: { ...schema, properties: { code: { enum: codes } } }, example } }
  }
  const content = {
    ...Object.fromEntries(
      [route.produces ?? []]
        .flat()
        .map((type) => [type, { schema: { type: 'string' }, ...findExample(route) }] as const),
    ),
    ...(route.response === undefined ? {} : json(route.response)),
  }
  const responses: Record<string, Json> = {
    [success]: {
      description: success === 204 ? 'Success, without a body' : 'Success',
      ...(Object.keys(content).length === 0 ? {} : { content }),
    },
  }
  for (const [status, answer] of Object.entries(route.alsoAnswers ?? {})) {
    const [description, own] = typeof answer === 'string' ? [answer] : answer
    const schema = own ?? (status === '202' ? Accepted : Number(status) < 300 ? route.response : undefined)
    const body = schema === undefined ? {} : { content: json(schema) }
    responses[status] = { description, ...body }
  }
  // Clients of OpenAI's protocol take any success for an answer, so a job that takes too long is a failure there.
  if (isJobBacked(route) && area.errorFormat === 'plain')
    responses[202] = { description: 'The job continues in the background', content: json(Accepted) }
  if (isResumable(route)) responses[204] = { description: 'No events after `Last-Event-ID`' }
  for (const [status, refusals] of groupErrors(area, route, settings)) {
    const description = [...new Set(refusals.map(({ detail }) => detail))].join('; ')
    const headers = status === 401 ? { headers: CHALLENGE_HEADER } : {}
    responses[status] ??= { description, ...headers, content: refusal(status, refusals) }
  }
  const busy = describeRefusal('database.busy', area)
  const refuses = Object.keys(responses).some((status) => status.startsWith('4'))
  if (!refuses) responses['4XX'] = { description: 'The request could not be read', content: json(Problem) }
  responses['5XX'] ??= {
    description: 'The service failed or is unavailable; `Retry-After`, if present, says when to retry',
    content: {
      'application/json': { ...media(Problem, 'output'), example: { detail: busy.detail, code: busy.code } },
    },
  }
  return responses
}

function findExample({ example }: AnyRoute): { example?: string } {
  return example === undefined ? {} : { example }
}

/** An error that a route can return. */
interface ErrorResponse {
  readonly detail: string
  readonly code: string
}

function describeRefusal(code: ErrorCode, area: Area): ErrorResponse & { readonly status: number } {
  const isInput = code === 'request.invalid'
  return {
    status: isInput ? area.invalidStatus : statusOf(code),
    detail: isInput ? 'The input is not valid' : getErrorRow(code).detail,
    code,
  }
}

/** Groups the refusals of a route by status. */
function groupErrors(area: Area, route: AnyRoute, settings: Settings): Map<number, ErrorResponse[]> {
  const byStatus = new Map<number, ErrorResponse[]>()
  for (const code of listRefusals(area, route, settings)) {
    const { status, ...refusal } = describeRefusal(code, area)
    byStatus.set(status, [...(byStatus.get(status) ?? []), refusal])
  }
  return byStatus
}

function listSecurity(auth: Auth, area: Area, route: AnyRoute, settings: Settings): Json[] {
  if (auth === 'public' || settings.authLevel === 'none') return []
  const key: Json[] = route.needsSession ? [] : [{ key: [] }]
  const credentials: Json[] = [{ bearer: [] }, { signIn: [] }, { session: [] }, ...key]
  return (auth === 'open' || auth === 'operator') && settings.openAreas.has(area.name)
    ? [...credentials, {}]
    : credentials
}

function chooseBodyMediaType(route: AnyRoute): string {
  if (route.bodyType === 'form') return 'application/x-www-form-urlencoded'
  return route.bodyType === 'multipart' ? 'multipart/form-data' : 'application/json'
}

function listParameters(
  type: z.ZodType | undefined,
  location: 'path' | 'query',
  schema: (type: z.ZodType, use: 'input') => Json,
): Json[] {
  if (type === undefined) return []
  const { properties = {}, required = [] } = schema(type, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    schema: { ...dropParsedPattern(property), ...findDefault(type, name) },
  }))
}

/** Returns the default of a field, which zod omits if the schema transforms a string into another type. */
function findDefault(type: z.ZodType, name: string): Json {
  const field = type instanceof z.ZodObject ? (type.shape as Record<string, unknown>)[name] : undefined
  return field instanceof z.ZodDefault ? { default: field.def.defaultValue } : {}
}

/** Drops the pattern of the string form if the schema's type is not a string. */
function dropParsedPattern({ pattern, ...schema }: Json): Json {
  return schema.type === 'string' ? { ...schema, ...(pattern === undefined ? {} : { pattern }) } : schema
}

/** Returns the query parameters that make a job-backed route respond without waiting. */
function listBackgroundParameters(route: AnyRoute): Json[] {
  if (!isJobBacked(route) || route.alwaysWaits) return []
  const parameter = (name: string, schema: Json, description: string): Json => ({
    name,
    in: 'query',
    required: false,
    description,
    schema,
  })
  return [
    parameter('background', { type: 'boolean' }, BACKGROUND_DESCRIPTION),
    parameter('callback_url', { type: 'string', format: 'uri', maxLength: 2000 }, CALLBACK_URL_DESCRIPTION),
    parameter(
      'after',
      { type: 'array', items: { type: 'string', format: 'uuid' }, maxItems: MAX_DEPENDENCIES },
      AFTER_DESCRIPTION,
    ),
    parameter('after_outcome', { type: 'string', enum: ['done', 'any'] }, AFTER_OUTCOME_DESCRIPTION),
  ]
}

function listStreamParameters(route: AnyRoute): Json[] {
  if (!isResumable(route)) return []
  const about = { description: LAST_EVENT_ID_DESCRIPTION, schema: { type: 'string' } }
  return [{ name: 'last_event_id', in: 'query', required: false, ...about }]
}

function listHeaderParameters(route: AnyRoute): Json[] {
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
            'A repeat with the same key within 24 hours returns the first response, with `Idempotent-Replayed: true`',
          ),
        ]
      : []),
    ...(isJobBacked(route) && !route.alwaysWaits
      ? [header('Prefer', '`respond-async` returns 202 with the job id immediately')]
      : []),
    ...(isResumable(route) ? [header('Last-Event-ID', 'Resumes the stream after this event')] : []),
  ]
}

function buildOperationId(area: Area, route: AnyRoute): string {
  const words = route.path
    .split('/')
    .filter(Boolean)
    .map((word) => word.replace(/^:/, 'by_').replace(/[^A-Za-z0-9]+/g, '_'))
  return [route.method, area.name, ...words].join('_')
}
