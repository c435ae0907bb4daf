import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { findSettingWarnings, findUnknownNames } from '../../tasks/platform/settings/warnings.ts'
import { PRODUCTION } from './settings-help.ts'

/** Valid settings that look like mistakes cause warnings. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-env-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const readFileAt = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

test('unknown names in .env are reported with a similar setting, if one exists', () => {
  for (const [name, nearest] of [
    ['WORKER_THREAD', 'WORKER_THREADS'],
    ['port', 'PORT'],
    ['Database_Url', 'DATABASE_URL'],
    ['SECERT_KEY', 'SECRET_KEY'],
    ['TRUSTPROXY', 'TRUST_PROXY'],
  ])
    assert.deepEqual(findUnknownNames(`${name}=1`), [
      `.env: unknown setting ${name}; did you mean ${nearest}?`,
    ])
  assert.deepEqual(findUnknownNames('PORT=1\n# x\nFRONTEND_THEME=dark\nAWS_REGION=x\n'), [
    '.env: unknown setting FRONTEND_THEME',
  ])
})

test('no name of .env.example and compose.yaml is unknown', () => {
  const example = readFileAt('.env.example').replace(/^#(?=[A-Z0-9_]+=)/gm, '')
  const compose = [...readFileAt('compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => `${name}=x`)
  assert.ok(example.includes('\nPORT=') && compose.length > 3)
  assert.deepEqual(findUnknownNames(`${example}\n${compose.join('\n')}`), [])
})

test('plain http in production causes a warning, except on a loopback address', () => {
  const warnings = (PUBLIC_BASE_URL: string, env = PRODUCTION) =>
    findSettingWarnings(parseSettings({ ...env, PUBLIC_BASE_URL }))
  assert.match(warnings('http://mill.internal:8000').join(), /^PUBLIC_BASE_URL is http: /)
  for (const good of [
    'https://mill.example.com',
    'http://127.0.0.1:8000',
    'http://[::1]',
    'http://localhost',
  ])
    assert.deepEqual(warnings(good), [], good)
  assert.deepEqual(warnings('http://mill.internal', { ...PRODUCTION, NODE_ENV: 'development' }), [])
})

test('a key that a list of keys could not hold causes a warning', () => {
  const key = PRODUCTION.SECRET_KEY
  const warnings = (SECRET_KEY: string) => findSettingWarnings(parseSettings({ ...PRODUCTION, SECRET_KEY }))
  for (const bad of [`${key},${key}`, ` ${key}`])
    assert.match(warnings(bad).join(), /^SECRET_KEY has a comma or outer white space: /, bad)
  assert.deepEqual(warnings(key), [])
})

test('a shorter retention of failed jobs than of others causes a warning', () => {
  const warnings = (WORKER_KEEP_FAILED_SECONDS: string) =>
    findSettingWarnings(parseSettings({ WORKER_KEEP_RESULT_SECONDS: '100', WORKER_KEEP_FAILED_SECONDS }))
  assert.match(warnings('99').join(), /^WORKER_KEEP_FAILED_SECONDS is less than WORKER_KEEP_RESULT_SECONDS: /)
  assert.deepEqual(warnings('100'), [])
})

test('a start logs the warnings', () => {
  writeFileSync(join(folder, '.env'), 'WORKER_THREAD=4\n')
  const main = fileURLToPath(new URL('../../edge/main.ts', import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
    cwd: folder,
    env: { PATH: process.env.PATH, WORKERTHREADS: 'of others' },
    encoding: 'utf8',
  })
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: number; msg: string })
  assert.deepEqual([status, lines.length], [2, 2], stdout)
  assert.equal(
    lines.find(({ level }) => level === 40)?.msg,
    '.env: unknown setting WORKER_THREAD; did you mean WORKER_THREADS?',
  )
})
