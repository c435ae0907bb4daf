import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client } from '../service.ts'
import { until } from '../until.ts'

const START = fileURLToPath(new URL('../../workers/start.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-start-'))
// As root the database runs as another user, who must be able to reach it.
chmodSync(folder, 0o755)

interface Started {
  readonly process: ChildProcess
  readonly output: string[]
  readonly client: Client
  /** The ids of its child processes by name, as its log has them. */
  pid(child: string): number
  stop(signal: NodeJS.Signals): Promise<number | null>
}

async function start(): Promise<Started> {
  const output: string[] = []
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', START], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_ENV: 'development',
      DATABASE_URL: '',
      DATA_DIR: folder,
      PORT: '0',
      LOG_LEVEL: 'info',
    },
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => output.push(...data.toString().split('\n').filter(Boolean)))
  }
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  after(() => child.kill('SIGKILL'))
  const line = await until(
    'it says where it listens',
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

test('the whole service starts from nothing, heals, stops in order, and starts again on its data', async () => {
  const first = await start()
  const line = first.output.find((text) => text.startsWith('Millrace listens'))!
  assert.match(
    line,
    /reference: http:\S+\/docs \| open without a credential: ai, llm, rag, voice, comms, tasks, jobs$/,
  )
  assert.equal((await first.client.register('first@example.com')).role, 'admin')
  assert.equal((await first.client.register('second@example.com')).role, 'user')

  const worker = first.pid('worker-1')
  process.kill(worker, 'SIGKILL')
  await until('the worker is started again', () => first.pid('worker-1') !== worker)

  assert.equal(await first.stop('SIGTERM'), 0)
  assert.ok(!first.output.some((text) => text.includes('The stop took too long')))

  const second = await start()
  const signIn = await second.client.fetch('/api/v1/auth/token', {
    method: 'POST',
    body: new URLSearchParams({ username: 'first@example.com', password: 'correct horse' }),
  })
  assert.equal(signIn.status, 200)
  assert.equal(await second.stop('SIGINT'), 0)
})

after(() => rmSync(folder, { recursive: true, force: true }))
