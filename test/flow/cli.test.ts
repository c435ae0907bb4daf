import assert from 'node:assert/strict'
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { writeTask } from '../../edge/cli/task-files.ts'
import { createTestDatabase } from '../database.ts'
import { createKey } from '../edge/api-keys-help.ts'
import { createEmail, startEdge } from '../edge/harness.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'

/** `npx millrace` as a process, against an edge and a worker. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BIN = join(ROOT, 'edge/cli/millrace.mjs')
const folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
after(() => rmSync(folder, { recursive: true }))

const { url } = await createTestDatabase()
const api = await startEdge(url)
await startProcess('worker', url, { WORKER_QUEUES: 'system,webhooks', WORKER_THREADS: '1' })
const { key } = await createKey(api, await api.register(createEmail('owner')))
const env = { ...process.env, MILLRACE_URL: `http://127.0.0.1:${api.port}`, MILLRACE_KEY: key }

interface Started {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  readonly ended: Promise<number | null>
}

function start(
  words: readonly string[],
  command: readonly string[] = [process.execPath, BIN],
  options: SpawnOptions = {},
): Started {
  const [file, ...args] = [...command, ...words]
  const child = spawn(file!, args, { env, ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (data: Buffer) => {
      texts[name] += data
    })
  after(() => child.kill('SIGKILL'))
  const ended = (once(child, 'close') as Promise<[number | null]>).then(([code]) => code)
  return { child, out: () => texts.stdout, err: () => texts.stderr, ended }
}

async function run(...words: string[]): Promise<{ status: number | null; out: string; err: string }> {
  const { ended, out, err } = start(words)
  return { status: await ended, out: out(), err: err() }
}

test('a job runs, fails and is retried from the command line', async () => {
  const done = await run(
    'enqueue',
    'io_simulation_task',
    '--args',
    '{"operations":2,"duration_ms":1}',
    '--wait',
  )
  assert.equal(done.status, 0, done.err)
  assert.equal(JSON.parse(done.out).operations.length, 2)
  const failed = await run(
    'enqueue',
    'failure_testing_task',
    '--args',
    '{"probability":1}',
    '--wait',
    '--json',
  )
  assert.equal(failed.status, 1)
  const { job_id: id } = JSON.parse(failed.out) as { job_id: string }
  assert.match((await run('logs', id)).out, /error {6}The task failed, as requested/)
  assert.equal((await run('retry', id, '--wait')).status, 1)
  const { out } = await run('jobs', '--status', 'failed', '--json')
  assert.equal(out.trim().split('\n').length, 2)
})

test('a batch ends with 1 unless all of its jobs are done', async () => {
  const file = join(folder, 'batch.json')
  writeFileSync(file, '[{"task_name":"noop"},{"task_name":"noop","after":[0]}]')
  const done = await run('batch', file, '--wait')
  assert.deepEqual([done.status, JSON.parse(done.out)], [0, { total: 2, done: 2, failed: 0, cancelled: 0 }])
  writeFileSync(
    file,
    '[{"task_name":"failure_testing_task","args":{"probability":1}},{"task_name":"noop","after":[0]}]',
  )
  const failed = await run('batch', file, '--wait')
  assert.deepEqual(
    [failed.status, JSON.parse(failed.out)],
    [1, { total: 2, done: 0, failed: 1, cancelled: 1 }],
  )
  assert.match(failed.err, /failed {2}The task failed, as requested \(task\.chosen_failure\)/)
})

test('Ctrl-C ends a stream with 130, and a closed pipe with 0', async () => {
  const following = start(['jobs', '--follow'])
  await until('the list is shown', () => following.out() !== '')
  following.child.kill('SIGINT')
  assert.equal(await following.ended, 130)
  assert.equal(following.err(), 'Stopped following. The jobs go on.\n')
  const piped = start(
    ['-c', `"${process.execPath}" "${BIN}" jobs --follow | head -n 1; exit \${PIPESTATUS[0]}`],
    ['bash'],
  )
  await until('the first line is shown', () => piped.out() !== '')
  await run('enqueue', 'noop', '--wait')
  assert.equal(await piped.ended, 0)
})

test('a closed output ends a command that follows, and a closed error output none', async () => {
  const bash = (script: string) => start(['-c', script], ['bash'])
  const millrace = `"${process.execPath}" "${BIN}"`
  const listening = bash(
    `${millrace} webhooks listen --forward http://127.0.0.1:1 --events job.done | head -n 1; exit \${PIPESTATUS[0]}`,
  )
  await until('the secret is shown', () => listening.out().startsWith('Secret: '))
  // The delivery makes the command write a line.
  await run('webhooks', 'trigger', 'job.done')
  assert.equal(await listening.ended, 0)
  assert.match(listening.err(), /The endpoint is deleted\n$/)
  assert.equal((await run('webhooks', 'trigger', 'job.done')).status, 2)

  const file = join(folder, 'result.json')
  const args = `--args '{"operations":2,"duration_ms":1}' --wait --json`
  const waiting = bash(
    `${millrace} enqueue io_simulation_task ${args} 2>&1 >"${file}" | head -n 1; exit \${PIPESTATUS[0]}`,
  )
  assert.equal(await waiting.ended, 0)
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).status, 'done')
})

test('deliveries of the account arrive at a program, signed, and test events show its answer', async () => {
  const received: { headers: Record<string, string>; body: string }[] = []
  const program = createServer(async (request, response) => {
    received.push({ headers: request.headers as Record<string, string>, body: await text(request) })
    response.end()
  })
  program.listen(0, '127.0.0.1')
  await once(program, 'listening')
  after(() => program.close())
  const forward = `http://127.0.0.1:${(program.address() as AddressInfo).port}/hooks`
  const listening = start(['webhooks', 'listen', '--forward', forward, '--events', 'job.done'])
  const secret = await until('the secret is shown', () => /^Secret: (\S+)$/m.exec(listening.out())?.[1])
  const sent = await run('webhooks', 'trigger', 'job.done')
  assert.equal(sent.status, 0, sent.err)
  assert.match(sent.out, /delivered: 200 in \d+ ms/)
  await run('enqueue', 'noop', '--wait')
  await until('the event arrives', () => received.length === 2)
  const types = received.map(
    ({ headers, body }) => (new Webhook(secret).verify(body, headers) as { type: string }).type,
  )
  assert.deepEqual(types, ['webhook.test', 'job.done'])
  listening.child.kill('SIGTERM')
  assert.equal(await listening.ended, 143)
  assert.equal((await run('webhooks', 'trigger', 'job.done')).status, 2)
})

test('an old Node hands over to that of the project', async () => {
  mkdirSync(join(folder, 'edge/cli'), { recursive: true })
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  cpSync(BIN, join(folder, 'edge/cli/millrace.mjs'))
  writeFileSync(
    join(folder, 'edge/cli/main.ts'),
    'const args: string[] = process.argv.slice(2)\nconsole.log(args.join())\nprocess.exitCode = 7\n' +
      `if (args[0] === 'wait') setInterval(() => {}, 1000)\n`,
  )
  // This Node without type stripping stands for an old one.
  const old = [process.execPath, '--no-experimental-strip-types', join(folder, 'edge/cli/millrace.mjs')]
  const missing = start(['jobs'], old)
  assert.equal(await missing.ended, 2)
  assert.match(
    missing.err(),
    /^Node v\S+ is too old for this command\. Run `npm ci` in \S+, which installs another one there\.\n$/,
  )
  const own = join(folder, 'node_modules/.bin/node')
  writeFileSync(own, `#!/bin/sh\nexec "${process.execPath}" "$@"\n`)
  chmodSync(own, 0o755)
  const handed = start(['jobs', '--limit', '3'], old)
  assert.equal(await handed.ended, 7)
  assert.deepEqual([handed.out(), handed.err()], ['jobs,--limit,3\n', ''])
  // A terminal sends Ctrl-C to the whole group.
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const waiting = start(['wait'], old, { detached: true })
    await until('the command runs', () => waiting.out() === 'wait\n')
    process.kill(-waiting.child.pid!, signal)
    assert.equal(await waiting.ended, status)
  }
})

test('the types of a new task are valid', async () => {
  const root = join(folder, 'copy')
  for (const path of ['sql', 'tasks', 'package.json', 'Procfile', 'tsconfig.json'])
    cpSync(join(ROOT, path), join(root, path), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  mkdirSync(join(root, 'test'))
  const { files } = writeTask(root, 'mill.grind', { pool: 'cpu' })
  // The list casts its entries, and its own imports would make this check take four times as long.
  writeFileSync(
    join(root, 'tasks/index.ts'),
    `import type { TaskFinder } from './task.ts'\nexport declare const findTask: TaskFinder\n`,
  )
  writeFileSync(join(root, 'new.json'), JSON.stringify({ extends: './tsconfig.json', include: [], files }))
  const compiler = join(ROOT, 'node_modules/typescript-native/bin/tsc')
  const check = start(['-p', join(root, 'new.json')], [process.execPath, compiler])
  assert.equal(await check.ended, 0, check.out())
})
