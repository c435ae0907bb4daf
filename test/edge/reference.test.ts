import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import openapiTS, { astToString } from 'openapi-typescript'
import { startEdgeAndDatabase } from './harness.ts'

/** Checks the OpenAPI reference with third-party tools: a linter, a client generator, a compiler. */

const run = promisify(execFile)
const MODULES_FOLDER = fileURLToPath(new URL('../../node_modules', import.meta.url))
const { api } = await startEdgeAndDatabase({ env: { PUBLIC_BASE_URL: 'https://mill.test' } })
const source = (await api.get('/openapi.json')).text
const folder = mkdtempSync(join(tmpdir(), 'millrace-client-'))
after(() => rmSync(folder, { recursive: true, force: true }))

interface Content {
  readonly example?: unknown
}
interface Operation {
  readonly summary: string
  readonly requestBody?: { readonly content: Record<string, Content> }
  readonly responses: Record<string, { readonly content?: Record<string, Content> }>
}
const paths = (JSON.parse(source) as { paths: Record<string, Record<string, Operation>> }).paths
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
)

test('a public linter finds no problems', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  // OpenAPI and our router prefer the fixed segment of `/workers/leases/{lease_id}` to `/workers/{worker_id}/drain`.
  const isExpected = ({ ruleId, message }: { ruleId: string; message: string }): boolean =>
    ruleId === 'no-ambiguous-paths' && message.includes('/api/v1/workers/leases/{lease_id}')
  assert.deepEqual(
    problems
      .filter((problem) => !isExpected(problem))
      .map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`),
    [],
  )
})

test('JSON bodies, answers and refusals have examples', () => {
  const without: string[] = []
  let all = 0
  for (const { name, requestBody, responses } of operations) {
    const contents = [requestBody?.content, ...Object.values(responses).map(({ content }) => content)]
    for (const content of contents.map((each) => each?.['application/json'])) {
      if (content === undefined) continue
      all++
      if (content.example === undefined) without.push(name)
    }
  }
  assert.ok(all > 300)
  assert.deepEqual(without, [])
})

test('every stream documents its frames, each with event, id and data', () => {
  const streams = operations.flatMap(({ name, responses }) => {
    const content = responses[200]?.content?.['text/event-stream']
    return content === undefined ? [] : [{ name, example: String(content.example) }]
  })
  assert.equal(streams.length, 7)
  for (const { name, example } of streams) {
    const frames = example.split('\n\n').slice(0, -1)
    assert.ok(frames.length > 0, name)
    for (const frame of frames) {
      const [, data] = /^event: \w+\nid: \S+\ndata: (.+)$/.exec(frame) ?? assert.fail(`${name}: ${frame}`)
      assert.equal(typeof JSON.parse(data!), 'object')
    }
  }
  const chat = streams.find(({ name }) => name === 'post /api/v1/ai/chat/stream')!.example
  assert.deepEqual(chat.match(/(?<=event: )\w+/g), ['connect', 'chunk', 'chunk', 'final', 'complete'])
})

test('every operation documents failures, in one format', () => {
  for (const { name, responses } of operations) {
    assert.ok(responses['5XX'] ?? responses[500], name)
    assert.ok(
      Object.keys(responses).some((status) => status.startsWith('4')),
      name,
    )
  }
})

test('every refusal documents its possible codes', () => {
  const { components } = JSON.parse(source) as {
    components: { schemas: { Problem: { required: string[] } } }
  }
  assert.deepEqual(components.schemas.Problem.required, ['detail', 'code'])
  let all = 0
  for (const { name, responses } of operations)
    for (const [status, { content }] of Object.entries(responses)) {
      // The only refusal with its own body.
      if (name === 'get /ready' && status === '503') continue
      if (!/^[45]\d\d$/.test(status)) continue
      const { schema, example } = content!['application/json'] as {
        schema: { properties?: { code: { enum: string[] } } }
        example: { code: string }
      }
      all++
      // Other layers and providers add codes of their own to these.
      if (status.startsWith('5')) assert.equal(schema.properties, undefined, `${name} ${status}`)
      else assert.ok(schema.properties!.code.enum.includes(example.code), `${name} ${status}`)
    }
  assert.ok(all > 500)
})

test('no default is an object, because openapi-python-client then omits the operation', () => {
  const found: string[] = []
  JSON.stringify(JSON.parse(source), function (this: object, name, value) {
    // Only a `default` next to a type is a default value, because a property may also be named `default`.
    const isDefault = name === 'default' && ('type' in this || 'anyOf' in this || '$ref' in this)
    if (isDefault && typeof value === 'object' && value !== null && !Array.isArray(value))
      found.push(JSON.stringify(this))
    return value
  })
  assert.deepEqual(found, [])
})

const CLIENT_SOURCE = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const baseUrl = process.argv[2]!
const anonymous = createClient<paths>({ baseUrl })

const registered = await anonymous.POST('/api/v1/auth/register', {
  body: { email: 'client@example.com', password: 'correct horse' },
})
if (registered.error !== undefined) throw new Error(registered.error.detail)
const user: components['schemas']['UserResponse'] = registered.data

const token = await anonymous.POST('/api/v1/auth/token', {
  body: { username: user.email, password: 'correct horse' },
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})
const client = createClient<paths>({ baseUrl, headers: { authorization: 'Bearer ' + token.data!.access_token } })

const organization = await client.POST('/api/v1/orgs', { body: { name: 'Mill', slug: 'mill' } })
const members = await client.GET('/api/v1/orgs/{org_id}/members', {
  params: { path: { org_id: organization.data!.id } },
})
const jobs = await client.GET('/api/v1/jobs', { params: { query: { status: 'queued', limit: 5 } } })
const documents = await client.GET('/api/v1/documents', { params: { query: { page_size: 1, trashed: false } } })
const missing = await client.GET('/api/v1/documents/{id}', { params: { path: { id: 1 } } })
const detail: string | undefined = missing.error?.detail

// Requests that the reference does not allow must not compile.
// @ts-expect-error
void (() => client.POST('/api/v1/orgs', { body: { slug: 'mill' } }))
// @ts-expect-error
void (() => client.GET('/api/v1/jobs', { params: { query: { status: 'late' } } }))
// @ts-expect-error
void (() => client.GET('/api/v1/jobs', { params: { query: { limit: '5' } } }))
// @ts-expect-error
void (() => client.GET('/api/v1/jobs', { params: { query: { queue: 'documents' } } }))
// @ts-expect-error
void (() => client.GET('/api/v1/nowhere'))

console.log(JSON.stringify({
  role: user.role,
  members: members.data!.map((member) => member.role),
  jobs: jobs.data!.map((job) => job.queue),
  documents: documents.data!.items.length,
  missing: [missing.response.status, detail],
}))
`

const LINT_CONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  },
  include: ['*.ts'],
}

test('a generated client compiles, rejects invalid calls, and runs', async () => {
  // Make request fields with a default value optional, which the generator does not do by default.
  const types = astToString(await openapiTS(source, { defaultNonNullable: false }))
  symlinkSync(MODULES_FOLDER, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(LINT_CONFIG))
  writeFileSync(join(folder, 'api.ts'), types)
  writeFileSync(join(folder, 'client.ts'), CLIENT_SOURCE)
  assert.ok(readFileSync(join(folder, 'api.ts'), 'utf8').length > 50_000)
  const tsc = join(MODULES_FOLDER, 'typescript-native/bin/tsc')
  await run(process.execPath, [tsc, '-p', folder]).catch(({ stdout }) => assert.fail(String(stdout)))
  const options = { cwd: folder }
  const args = ['--disable-warning=ExperimentalWarning', 'client.ts', `http://127.0.0.1:${api.port}`]
  const { stdout } = await run(process.execPath, args, options)
  assert.deepEqual(JSON.parse(stdout), {
    role: 'admin',
    members: ['owner'],
    jobs: ['accounts'],
    documents: 0,
    missing: [404, 'Document not found'],
  })
})
