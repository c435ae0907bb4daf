import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@hey-api/openapi-ts'
import spectral from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import { generateApi } from 'swagger-typescript-api'
import { startEdgeAndDatabase } from '../edge/harness.ts'

/** Checks the API reference with another linter and other generators than `reference.test.ts`. */

const execFileAsync = promisify(execFile)
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))
const { api } = await startEdgeAndDatabase({ env: { PUBLIC_BASE_URL: 'https://mill.test' } })
const { token } = await api.register('owner@example.com')
const source = (await api.get('/openapi.json')).text
const folder = mkdtempSync(join(tmpdir(), 'millrace-generators-'))
const input = join(folder, 'openapi.json')
writeFileSync(input, source)

const CONFIG = {
  compilerOptions: {
    target: 'es2024',
    lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
    module: 'preserve',
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    outDir: 'out',
  },
  include: ['*.ts', 'made'],
}

/** Compiles a program together with the generated code in `name`, runs it and returns its parsed output. */
async function runProgram(name: string, program: string): Promise<unknown> {
  const target = join(folder, name)
  symlinkSync(MODULES, join(target, 'node_modules'))
  writeFileSync(join(target, 'package.json'), '{"type":"module"}')
  writeFileSync(join(target, 'tsconfig.json'), JSON.stringify(CONFIG))
  writeFileSync(join(target, 'use.ts'), program)
  const tsc = join(MODULES, 'typescript-native/bin/tsc')
  await execFileAsync(process.execPath, [tsc, '-p', target]).catch(({ stdout }) =>
    assert.fail(String(stdout)),
  )
  // Generated files import each other without extensions, as for bundlers, so tsx runs them.
  const args = ['--import', import.meta.resolve('tsx'), 'out/use.js', `http://127.0.0.1:${api.port}`, token]
  const { stdout } = await execFileAsync(process.execPath, args, { cwd: target })
  return JSON.parse(stdout)
}

interface Rule {
  readonly then: { readonly function: Check }
}
type Check = (
  value: unknown,
  options: unknown,
  context: { path: (string | number)[] },
) => unknown[] | undefined

/**
 * Makes a rule skip values that it has already checked. It compiles a schema for each of 1700 examples, of which only
 * 340 differ.
 */
function skipCheckedValues(name: string): Rule {
  const rule = (rulesets.oas.rules as unknown as Record<string, Rule>)[name]!
  const check = rule.then.function
  const right = new Set<string>()
  const checkOnce: Check = (value, options, context) => {
    const known = JSON.stringify([context.path.includes('requestBody'), options, value])
    if (right.has(known)) return []
    const problems = check(value, options, context) ?? []
    if (problems.length === 0) right.add(known)
    return problems
  }
  // biome-ignore lint/suspicious/noThenProperty: Spectral's name for a rule's action
  return { ...rule, then: { ...rule.then, function: Object.assign(checkOnce, check) } }
}

test('Spectral finds no problem', async () => {
  const linter = new spectral.Spectral()
  const names = ['oas3-valid-media-example', 'oas3-valid-schema-example']
  const rules = Object.fromEntries(names.map((name) => [name, skipCheckedValues(name)]))
  linter.setRuleset({ extends: [rulesets.oas as never], rules: rules as never })
  const problems = await linter.run(source)
  assert.deepEqual(
    problems.map(({ code, message, path }) => `${code}: ${message} ${path.join('/')}`),
    [],
  )
})

test('@hey-api/openapi-ts generates code that compiles and runs', async () => {
  await createClient({ input, output: join(folder, 'hey/made'), logs: { level: 'silent' } })
  const answer = await runProgram(
    'hey',
    `
import { getDocuments, getJobs, postOrganizations } from './made'
import { client } from './made/client.gen'
const [baseUrl, token] = process.argv.slice(2)
client.setConfig({ baseUrl: baseUrl!, headers: { authorization: 'Bearer ' + token } })
const { data: documents } = await getDocuments({ query: { page_size: 5, trashed: false } })
const { data: organization } = await postOrganizations({ body: { name: 'Hey', slug: 'hey' } })
const { data: jobs } = await getJobs({ query: { limit: 5, status: 'queued' } })
// @ts-expect-error
export const wrong = () => getJobs({ query: { limit: '5' } })
console.log(JSON.stringify([documents!.total, organization!.slug, jobs!.map(({ queue }) => queue)]))
`,
  )
  assert.deepEqual(answer, [0, 'hey', ['accounts']])
})

test('swagger-typescript-api generates code that compiles and runs', async () => {
  mkdirSync(join(folder, 'swagger/made'), { recursive: true })
  await generateApi({ input, output: join(folder, 'swagger/made'), fileName: 'api.ts', silent: true })
  const answer = await runProgram(
    'swagger',
    `
import { Api } from './made/api'
const [baseUrl, token] = process.argv.slice(2)
const { api } = new Api({ baseUrl: baseUrl!, baseApiParams: { headers: { authorization: 'Bearer ' + token } } })
const documents = await api.getDocuments({ page_size: 5, trashed: false })
const organization = await api.postOrganizations({ name: 'Swagger', slug: 'swagger' })
// @ts-expect-error
export const wrong = () => api.getJobs({ limit: '5' })
const jobs = await api.getJobs({ limit: 5, status: 'queued' })
console.log(JSON.stringify([documents.data.total, organization.data.slug, jobs.data.map(({ queue }) => queue)]))
`,
  )
  assert.deepEqual(answer, [0, 'swagger', ['accounts']])
})
