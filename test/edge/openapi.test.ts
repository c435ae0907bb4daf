import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import { statusOf } from '../../edge/pipeline/answer/statuses.ts'
import { type AnyRoute, type Area, isJobBacked } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { getSharedEdge, startEdge } from './harness.ts'

interface Operation {
  readonly summary: string
  readonly description: string
  readonly security: readonly Record<string, unknown>[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: object
  }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> }
  readonly responses: Record<
    string,
    {
      readonly description: string
      readonly content?: Record<string, { readonly schema: { readonly $ref?: string } }>
    }
  >
  readonly operationId: string
}
interface Reference {
  readonly openapi: string
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    readonly schemas: Record<string, object>
    readonly securitySchemes: Record<string, object>
  }
}

const { url } = await getSharedEdge()
const api = await startEdge(url, {
  env: { PUBLIC_BASE_URL: 'https://api.example.com/', PROJECT_NAME: 'mill' },
})
const answer = await api.get('/openapi.json')
const reference = answer.json as Reference
const allRoutes = areas.flatMap((area) => area.routes.map((route) => ({ area, route })))
const pathOf = (area: Area, route: AnyRoute) =>
  `${area.prefix}${route.path}`.replace(/:(\w+)/g, '{$1}') || '/'
const findOperation = ({ area, route }: { area: Area; route: AnyRoute }) =>
  reference.paths[pathOf(area, route)]![route.method]!

test('is valid OpenAPI 3.1', async () => {
  assert.equal(answer.status, 200)
  const validator = new Validator()
  const { valid, errors } = await validator.validate(JSON.parse(answer.text))
  assert.deepEqual([valid, errors], [true, undefined])
  assert.match(reference.openapi, /^3\.1\./)
})

test('lists exactly the routes of the service', () => {
  const listed = Object.entries(reference.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  )
  assert.deepEqual(
    listed.sort(),
    allRoutes.map(({ area, route }) => `${route.method} ${pathOf(area, route)}`).sort(),
  )
})

test('every operation has a summary and a unique id', () => {
  const ids = allRoutes.map((item) => findOperation(item).operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const item of allRoutes) assert.ok(findOperation(item).summary.length > 3)
})

test('every operation lists all statuses of its errors', () => {
  for (const item of allRoutes) {
    const { route, area } = item
    const { responses } = findOperation(item)
    const name = `${route.method} ${pathOf(area, route)}`
    for (const code of route.errors ?? []) assert.ok(responses[statusOf(code)], `${name}: ${code}`)
    const auth = route.auth ?? area.auth
    if (auth !== 'public') assert.ok(responses[401], `${name}: 401`)
    if (auth !== 'public' && route.method !== 'get')
      assert.ok(responses[403], `${name}: 403, from another site`)
    if (route.params ?? route.query ?? route.body)
      assert.ok(responses[area.invalidStatus], `${name}: invalid`)
    if (route.body !== undefined)
      for (const status of [400, 413, 415]) assert.ok(responses[status], `${name}: ${status}`)
    if (route.sideEffect) for (const status of [409, 422]) assert.ok(responses[status], `${name}: ${status}`)
    const isAccepted = isJobBacked(route) && area.errorFormat === 'plain'
    assert.equal(isAccepted && responses[202] === undefined, false, `${name}: 202`)
  }
})

test('every additional answer with a body has its schema', () => {
  for (const item of allRoutes)
    for (const status of Object.keys(item.route.alsoAnswers ?? {})) {
      // A range has the media type of its file.
      if (['204', '206', '304'].includes(status)) continue
      const { content } = findOperation(item).responses[status]!
      assert.ok(content !== undefined, `${pathOf(item.area, item.route)}: ${status}`)
    }
})

test('a route that sends ranges also refuses them', () => {
  const partial = allRoutes.filter((item) => findOperation(item).responses[206] !== undefined)
  assert.ok(partial.length > 2)
  for (const item of partial)
    assert.ok(findOperation(item).responses[416] !== undefined, pathOf(item.area, item.route))
})

test('every refusal is a Problem', () => {
  for (const item of allRoutes) {
    for (const [status, { content }] of Object.entries(findOperation(item).responses)) {
      // `/ready` answers 503 with its checks.
      if (item.route.path === '/ready' && status === '503') continue
      if (Number(status) < 400 || content === undefined) continue
      assert.equal(content['application/json']?.schema.$ref, '#/components/schemas/Problem')
    }
  }
})

test('successes have the declared status, and a body exactly if there is one', () => {
  const extract = findOperation(allRoutes.find(({ route }) => route.path === '/:id/extract')!)
  assert.deepEqual(
    Object.keys(extract.responses).filter((status) => status < '300'),
    ['200', '202'],
  )
  const upload = findOperation(
    allRoutes.find(
      ({ area, route }) => area.name === 'documents' && route.method === 'post' && route.path === '',
    )!,
  )
  assert.ok(
    upload.responses[201]?.content?.['application/json'] &&
      upload.responses[200]?.content?.['application/json'],
  )
  const remove = findOperation(
    allRoutes.find(({ area, route }) => area.name === 'documents' && route.method === 'delete')!,
  )
  assert.equal(remove.responses[204]?.content, undefined)
})

test('responses other than JSON have their content types, and 202 has a job', () => {
  const { paths } = reference
  const types = (path: string, status = 200) =>
    Object.keys(Object.values(paths[path]!)[0]!.responses[status]!.content ?? {})
  assert.deepEqual(types('/docs/{file}'), ['text/*'])
  assert.deepEqual(types('/pages/pages.json'), ['application/json'])
  assert.deepEqual(types('/pages/{folder}/{file}'), ['*/*'])
  assert.deepEqual(types('/api/v1/documents/{id}/content'), ['*/*'])
  assert.deepEqual(types('/voice/preview'), ['audio/mpeg'])
  const { content } = paths['/voice/preview']!.post!.responses[202]!
  assert.deepEqual(content!['application/json']!.schema, { $ref: '#/components/schemas/Accepted' })
})

test('every path parameter is required', () => {
  for (const [path, methods] of Object.entries(reference.paths)) {
    for (const operation of Object.values(methods)) {
      const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
      assert.deepEqual(
        inPath.map(({ name }) => `{${name}}`).sort(),
        (path.match(/\{\w+\}/g) ?? []).sort(),
        path,
      )
      assert.ok(inPath.every(({ required }) => required))
    }
  }
})

test('every $ref resolves within the document', () => {
  const names = new Set(Object.keys(reference.components.schemas))
  for (const [, target] of answer.text.matchAll(/"\$ref":"([^"]+)"/g)) {
    assert.match(target!, /^#\/components\/schemas\//)
    assert.ok(names.has(target!.split('/').at(-1)!), target)
  }
  assert.doesNotMatch(answer.text, /\$defs/)
  assert.equal(answer.text.includes(fileURLToPath(new URL('../..', import.meta.url))), false)
})

test('input limits are documented', () => {
  const list = findOperation(
    allRoutes.find(
      ({ area, route }) => area.name === 'documents' && route.method === 'get' && route.path === '',
    )!,
  )
  const names = list.parameters!.map(({ name, required }) => [name, required])
  assert.deepEqual(names, [
    ['page', false],
    ['page_size', false],
    ['limit', false],
    ['cursor', false],
    ['kind', false],
    ['tag', false],
    ['from', false],
    ['to', false],
    ['sort', false],
    ['search', false],
    ['include_superseded', false],
    ['trashed', false],
    ['hits', false],
  ])
  const described = list.parameters! as unknown as { schema: { description?: string } }[]
  assert.deepEqual(
    described.slice(1, 3).map(({ schema }) => schema.description),
    ['Rows per page: 1 to 200, default 50', 'Alias of `page_size`'],
  )
  const extract = findOperation(allRoutes.find(({ route }) => route.path === '/:id/extract')!)
  const language = extract.parameters!.find(({ name }) => name === 'language') as unknown as {
    schema: { maxLength: number; pattern: string }
  }
  assert.equal(language.schema.maxLength, 64)
  assert.match('chi_sim+eng', new RegExp(language.schema.pattern))
  const register = reference.components.schemas.UserCreate as {
    properties: Record<string, object>
    required: string[]
    additionalProperties: boolean
  }
  assert.deepEqual(register.required, ['email', 'password'])
  assert.deepEqual(register.properties.password, { type: 'string', minLength: 8, maxLength: 1024 })
  assert.equal(register.additionalProperties, false)
})

test('answers may get fields, and requests refuse unknown ones', () => {
  const isClosed = (value: unknown): boolean => JSON.stringify(value).includes('"additionalProperties":false')
  const named = new Set<string>()
  const visit = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value ?? {}).matchAll(/"#\/components\/schemas\/(\w+)"/g))
      if (!named.has(name!)) {
        named.add(name!)
        visit(reference.components.schemas[name!])
      }
  }
  for (const item of allRoutes) {
    const { responses } = findOperation(item)
    assert.ok(!isClosed(responses), pathOf(item.area, item.route))
    visit(responses)
  }
  assert.ok(named.size > 150)
  for (const name of named) assert.ok(!isClosed(reference.components.schemas[name]), name)
})

test('server, cookie and security schemes follow the settings', () => {
  assert.deepEqual(reference.servers, [{ url: 'https://api.example.com' }])
  assert.deepEqual(reference.components.securitySchemes, {
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
    session: { type: 'apiKey', in: 'cookie', name: '__Host-mill_session' },
  })
})

test('security lists the accepted credentials and the scope for API keys', () => {
  assert.deepEqual(reference.paths['/health']!.get!.security, [])
  const signedIn = [{ bearer: [] }, { signIn: [] }, { session: [] }]
  const { paths } = reference
  assert.deepEqual(paths['/api/v1/documents']!.get!.security, [...signedIn, { key: [] }])
  assert.deepEqual(paths['/api/v1/documents']!.post!.security, [...signedIn, { key: [] }])
  assert.deepEqual(paths['/api/v1/jobs']!.get!.security, [...signedIn, { key: [] }, {}])
  assert.deepEqual(paths['/api/v1/auth/keys']!.get!.security, signedIn)
  const says = (path: string, method: string, text: RegExp) =>
    assert.match(paths[path]![method]!.description, text)
  says('/api/v1/documents', 'get', /An API key needs the scope `documents:read`\.$/)
  says('/api/v1/documents', 'post', /An API key needs the scope `documents:write`\.$/)
  says('/api/v1/auth/keys', 'get', /API keys are rejected/)
  says('/health', 'get', /No credential is needed/)
})

test('closed areas and disabled authentication are documented accordingly', async () => {
  const closed = (await (await startEdge(url, { env: { OPEN_AREAS: 'ai' } })).get('/openapi.json'))
    .json as Reference
  assert.deepEqual(closed.paths['/api/v1/jobs']!.get!.security, [
    { bearer: [] },
    { signIn: [] },
    { session: [] },
    { key: [] },
  ])
  const none = (await (await startEdge(url, { env: { AUTH_LEVEL: 'none' } })).get('/openapi.json'))
    .json as Reference
  assert.deepEqual(none.paths['/api/v1/documents']!.get!.security, [])
})
