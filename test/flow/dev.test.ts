import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createTestDatabase } from '../database.ts'
import { Client, collectLines, SECRET, SHORT_LIVED_FLAGS } from '../service.ts'
import { until } from '../until.ts'

/** `npm run dev` on a copy of the code. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-dev-'))
for (const room of ['edge', 'sql', 'tasks', 'workers', 'package.json'])
  cpSync(join(ROOT, room), join(folder, room), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))

const findFreePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

const { url } = await createTestDatabase()
const port = await findFreePort()
const log: string[] = []
const child = spawn(process.execPath, [...SHORT_LIVED_FLAGS, 'workers/start.ts', '--watch'], {
  cwd: folder,
  env: {
    ...process.env,
    NODE_ENV: 'development',
    DATABASE_URL: url,
    SECRET_KEY: SECRET,
    DATA_DIR: join(folder, 'data'),
    PORT: String(port),
    LOG_LEVEL: 'info',
    WORKER_THREADS: '1',
  },
  stdio: ['ignore', 'pipe', 'pipe'],
})
for (const stream of [child.stdout, child.stderr]) collectLines(stream, log)
const ended = once(child, 'exit')
after(async () => {
  child.kill('SIGTERM')
  await ended
  rmSync(folder, { recursive: true })
})
const client = new Client(port)

/** Waits for a line after those of an earlier step. */
let seen = 0
async function waitForLine(pattern: RegExp): Promise<string> {
  const found = await until(`the log has ${pattern}`, () => {
    const index = log.findIndex((line, n) => n >= seen && pattern.test(line))
    return index >= 0 && { index }
  })
  seen = found.index + 1
  return log[found.index]!
}

function change(path: string, from: string, to: string): void {
  const file = join(folder, path)
  const text = readFileSync(file, 'utf8')
  assert.ok(text.includes(from), path)
  writeFileSync(file, text.replace(from, to))
}

test('a changed route restarts the edge, and broken code waits for its fix', async () => {
  await waitForLine(/^Changed code restarts its process/)
  change('edge/routes/tasks.ts', "summary: 'Enqueue a task'", "summary: 'Enqueue another task'")
  await waitForLine(/Changed edge\/routes\/tasks\.ts: restarted edge-1 in \d+\.\d s/)
  assert.match(await (await client.fetch('/openapi.json')).text(), /Enqueue another task/)
  change('edge/routes/tasks.ts', "summary: 'Enqueue another task'", "summary 'Enqueue a task'")
  await waitForLine(/The start failed; the next change repeats it/)
  change('edge/routes/tasks.ts', "summary 'Enqueue a task'", "summary: 'Enqueue a task'")
  await waitForLine(/restarted edge-1 in/)
  assert.match(await (await client.fetch('/openapi.json')).text(), /Enqueue a task/)
})

test('a changed task restarts edge and worker, and its next job runs the new code', async () => {
  change('tasks/system/noop.task.ts', 'resolve({ echo })', "resolve({ echo: 'new' })")
  change('tasks/load-test/orchestrator.work.ts', 'export ', '/* new */ export ')
  await waitForLine(/Changed tasks\/.* and 1 more: restarted edge-1, worker-1 in/)
  const answer = await client.post('/api/v1/tasks/enqueue', { task_name: 'noop' })
  const { task_id: id } = (await answer.json()) as { task_id: string }
  const { result } = await until('the job is done', async () => {
    const found = (await (await client.fetch(`/api/v1/tasks/result/${id}`)).json()) as {
      status: string
      result: unknown
    }
    return found.status === 'completed' && found
  })
  assert.deepEqual(result, { echo: 'new' })
})

test('changed SQL migrates, without a restart', async () => {
  change('sql/jobs/functions/job_json.sql', '--', '-- New.\n--')
  await waitForLine(/Changed sql\/jobs\/functions\/job_json\.sql: migrated in/)
  change('sql/jobs/functions/job_json.sql', 'create or replace function', 'creat function')
  await waitForLine(/The migration failed: /)
  assert.equal((await client.fetch('/health')).status, 200)
  assert.equal(child.exitCode, null)
})
