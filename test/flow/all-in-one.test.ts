import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { connect } from '../../sql/connections/driver.ts'
import { findRunningUrl } from '../../sql/server/embedded/embedded.ts'
import { Client, SHORT_LIVED_FLAGS } from '../service.ts'
import { until } from '../until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-start-'))
// When root starts the service, PostgreSQL runs as another user, who needs access to the folder.
chmodSync(folder, 0o755)

interface Started {
  readonly process: ChildProcess
  readonly output: string[]
  readonly client: Client
  /** Returns the process id that the log shows for this child. */
  pid(child: string): number
  stop(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts the service as `npm start` does and collects its log in `output`. Signals are sent only to npm. */
function spawnStart(dataDir: string): {
  child: ChildProcess
  output: string[]
  ended: Promise<number | null>
} {
  const output: string[] = []
  const child = spawn('npm', ['start'], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_ENV: 'development',
      DATABASE_URL: '',
      DATA_DIR: dataDir,
      PORT: '0',
      LOG_LEVEL: 'info',
    },
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => output.push(...data.toString().split('\n').filter(Boolean)))
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  after(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // Every child has already exited.
    }
  })
  return { child, output, ended }
}

async function start(): Promise<Started> {
  const { child, output, ended } = spawnStart(folder)
  const line = await until(
    'the log shows the address',
    () => output.find((text) => text.startsWith('Millrace listens')),
    60_000,
  )
  const port = Number(/http:\/\/127\.0\.0\.1:(\d+) /.exec(line)![1])
  const pid = (name: string): number => {
    const lines = output.filter((text) => text.includes(`"child":"${name}","pid"`))
    return (JSON.parse(lines.at(-1)!) as { pid: number }).pid
  }
  return {
    process: child,
    output,
    client: new Client(port),
    pid,
    stop: (signal) => {
      child.kill(signal)
      return ended
    },
  }
}

/** Runs an operator command on a data folder. */
async function runCommand(script: string, dataDir: string, ...args: string[]): Promise<string> {
  const file = fileURLToPath(new URL(`../../${script}`, import.meta.url))
  const env = { ...process.env, NODE_ENV: 'development', DATABASE_URL: '', DATA_DIR: dataDir }
  const words = [...SHORT_LIVED_FLAGS, file, ...args]
  return (await promisify(execFile)(process.execPath, words, { env })).stdout
}

test('a failed start reports the reason and exits', async () => {
  const taken = mkdtempSync(join(tmpdir(), 'millrace-taken-'))
  after(() => rmSync(taken, { recursive: true, force: true }))
  mkdirSync(join(taken, 'postgres'))
  writeFileSync(join(taken, 'postgres', 'diary.txt'), 'mine')
  const { output, ended } = spawnStart(taken)
  assert.equal(await ended, 2)
  assert.match(output.join('\n'), /is not empty and holds no PostgreSQL database; it was left unchanged/)
})

test('the whole service starts from nothing, restarts a killed worker, stops in order and starts again on its data', async () => {
  const first = await start()
  const line = first.output.find((text) => text.startsWith('Millrace listens'))!
  assert.match(
    line,
    /monitor: http:\S+\/monitor \| reference: http:\S+\/docs \| open without a credential: ai, llm, rag, voice, comms, tasks, jobs$/,
  )
  const link = await until('the log explains how to create an admin', () =>
    first.output.find((text) => text.startsWith('There is no admin yet.')),
  )
  const { pathname, searchParams } = new URL(link.split(' ').at(-1)!)
  assert.equal((await first.client.fetch(pathname)).status, 200)
  const json = {
    email: 'first@example.com',
    password: 'correct horse',
    setup_token: searchParams.get('token'),
  }
  const made = await first.client.post('/api/v1/auth/register', json)
  assert.equal(((await made.json()) as { role: string }).role, 'admin')
  assert.equal((await first.client.register('second@example.com')).role, 'user')

  // Operator commands use the database of the running service.
  const backup = join(folder, 'backup')
  assert.match(await runCommand('tasks/backup/backup-main.ts', folder, backup), /^Wrote /)
  const unlocked = await runCommand('edge/admin/main.ts', folder, 'unlock', 'first@example.com')
  assert.equal(unlocked, 'first@example.com had no failed logins\n')

  const database = await connect({ url: findRunningUrl(folder)!, applicationName: 'look' })
  const { rows } = await database.query(`select distinct usename from pg_stat_activity
    where application_name ~ '^millrace-(edge|worker)'`)
  await database.end()
  assert.deepEqual(rows, [{ usename: 'millrace_app' }], 'no process of it is the superuser')

  const worker = first.pid('worker-1')
  process.kill(worker, 'SIGKILL')
  await until('the worker has been restarted', () => first.pid('worker-1') !== worker)

  assert.equal(await first.stop('SIGTERM'), 0)
  assert.ok(!first.output.some((text) => text.includes('Shutdown took too long')))

  const second = await start()
  assert.ok(!second.output.some((text) => text.includes('/setup')), 'there is an admin')
  const signIn = await second.client.fetch('/api/v1/auth/token', {
    method: 'POST',
    body: new URLSearchParams({ username: 'first@example.com', password: 'correct horse' }),
  })
  assert.equal(signIn.status, 200)
  assert.equal(await second.stop('SIGINT'), 0)

  // Without a running service, operator commands start the database, and create it if needed.
  const other = join(folder, 'restored')
  assert.match(await runCommand('tasks/backup/restore-main.ts', other, backup), /^Restored the state of /)
  const sessions = await runCommand('edge/admin/main.ts', other, 'revoke-sessions', 'second@example.com')
  assert.match(sessions, /^Sessions of second@example.com revoked: [1-9]/)
})

after(() => rmSync(folder, { recursive: true, force: true }))
