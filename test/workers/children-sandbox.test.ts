import assert from 'node:assert/strict'
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { probeSandbox, type Sandbox } from '../../workers/children/sandbox.ts'
import { until } from '../until.ts'
import type { Attempt } from './fixtures/hostile-attempts.ts'

/** A child that runs hostile code is confined, and each process hides its environment. */

const SECRET = 'a secret of the service, 32 characters or more'
const script = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const readEnvironment = (pid: number): string => readFileSync(`/proc/${pid}/environ`, 'latin1')

function startProcess(path: string, env: Record<string, string>, cwd?: string): ChildProcess {
  const child = fork(script(path), [], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: { PATH: process.env.PATH, TMPDIR: tmpdir(), SECRET_KEY: SECRET, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    cwd,
  })
  after(() => child.kill('SIGKILL'))
  return child
}

// As by default, the settings and the data folder are in the service's working folder.
const folder = mkdtempSync(join(tmpdir(), 'hostile-'))
const dataDir = join(folder, '.data')
mkdirSync(dataDir)
const settings = join(folder, '.env')
const key = join(dataDir, 'secret.key')
for (const file of [settings, key]) writeFileSync(file, `EMAIL_PROVIDER_API_KEY=${SECRET}`)

const parent = startProcess('fixtures/hostile-parent.ts', { DATA_DIR: dataDir }, folder)
const [sandbox] = (await once(parent, 'message')) as [Sandbox]

async function runAttempt(name: Attempt, argument: unknown, kind = 'attempt'): Promise<unknown> {
  parent.send([kind, [name, argument]])
  return (await once(parent, 'message'))[0]
}

/** Runs an attempt on a thread outside Node's permission model. Native addons are equally unrestricted. */
const runAttemptInThread = (name: Attempt, argument: unknown) => runAttempt(name, argument, 'attemptInThread')

test('a child can neither read secrets, nor write, nor start a process', async () => {
  const refused = 'ERR_ACCESS_DENIED'
  assert.equal(await runAttempt('readParent', 'environ'), refused)
  assert.equal(await runAttempt('read', key), refused)
  assert.equal(await runAttempt('read', settings), refused)
  assert.equal(await runAttempt('write', join(folder, 'new')), refused)
  assert.equal(await runAttempt('run', ['date']), refused)
  // A child may read its own code.
  assert.match(String(await runAttempt('read', script('../../workers/children/main.ts'))), /enableCodeCache/)
})

const { isIsolated, isUnprivileged } = sandbox

test('the sandbox uses all that the machine allows', () => {
  const canRun = (file: string, ...args: string[]) => spawnSync(file, [...args, 'true']).status === 0
  const unprivileged = ['setpriv', '--no-new-privs'] as const
  assert.equal(canRun(...unprivileged), isUnprivileged)
  assert.equal(
    canRun('unshare', '--user', '--map-root-user', '--net', '--mount', ...unprivileged),
    isIsolated,
  )
})

test('a child starts even if DATA_DIR contains its code, which then stays visible', () => {
  const entry = script('fixtures/hostile-child.ts')
  const probed = probeSandbox({ entry, hidden: [dirname(entry)] })
  assert.deepEqual([probed.isIsolated, probed.isUnprivileged], [false, isUnprivileged])
})

test("a child cannot read its parent's data", async () => {
  const environ = await runAttemptInThread('readParent', 'environ')
  if (isIsolated) assert.equal(environ, 'EACCES')
  else assert.doesNotMatch(String(environ), /secret/)
  if (isIsolated) assert.equal(await runAttemptInThread('readParent', `root${key}`), 'EACCES')
})

test('a child sees neither DATA_DIR nor .env if it is isolated', async () => {
  const content = readFileSync(key, 'latin1')
  assert.match(content, /secret/)
  assert.equal(await runAttemptInThread('read', key), isIsolated ? 'ENOENT' : content)
  assert.equal(await runAttemptInThread('read', settings), isIsolated ? '' : content)
  const uncover = ['umount', dataDir]
  for (const command of [uncover, ['unshare', '--user', '--map-root-user', '--mount', ...uncover]])
    assert.notEqual(await runAttemptInThread('run', command), '')
  assert.equal(await runAttemptInThread('read', key), isIsolated ? 'ENOENT' : content)
})

test('a child has no network if it is isolated', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.close())
  const { port } = server.address() as AddressInfo
  assert.equal(await runAttemptInThread('connect', port), isIsolated ? 'ENETUNREACH' : 'connected')
})

test('a child gains no rights if the machine has no_new_privs', async () => {
  const status = String(await runAttemptInThread('read', '/proc/self/status'))
  assert.equal(/^NoNewPrivs:\s1$/m.test(status), isUnprivileged)
  if (isIsolated) assert.match(status, /^CapEff:\s0+$/m)
})

if (process.platform === 'linux')
  describe('each process blanks its initial environment', () => {
    // The processes keep waiting, because their database is unreachable.
    const env = { DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none', NODE_ENV: 'test', PORT: '0' }
    for (const main of [
      'edge/main',
      'workers/main',
      'workers/start',
      'workers/processes/isolated-main',
      'tasks/migrate-main',
    ])
      test(main, async () => {
        const { pid } = startProcess(`../../${main}.ts`, env)
        await until('the environment is blank', () => /^\0+$/.test(readEnvironment(pid!)))
      })
  })
