import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseBlocks } from '../readme.ts'
import { until } from '../until.ts'
import { findMissing, startProgram, type WorkerProcess } from './programs.ts'
import { startWorkerClients } from './worker-clients.ts'
import { startLossyProxy } from './worker-clients-proxy.ts'

/** Workers of worker queues that are programs: TypeScript, Python, shell. */

const { owner, client, entry, addQueue, enqueue, readJob, waitFor, env, query } = await startWorkerClients()
const EXAMPLES = fileURLToPath(new URL('../../deploy/workers/', import.meta.url))
const python = findMissing('python3')
const shell = findMissing('bash', 'curl', 'jq')
for (const reason of [python, shell]) if (reason !== false) process.stderr.write(`A worker ${reason}\n`)

const readEvents = (id: string) =>
  query('select kind, data from job_event_row where job_id = $1 and ended is null order by seq', [id])
const readLog = (id: string) => query('select level, message, data from job_log where job_id = $1', [id])

/** Returns the example of a worker in a README, for another queue. */
function readExample(file: string, language: string, queue: string): string {
  const blocks = parseBlocks(readFileSync(file, 'utf8')).filter((block) => block.language === language)
  return blocks.find(({ text }) => text.includes('images'))!.text.replace('images', queue)
}

/** Environment of a program whose first claim and first report get no answer. */
async function startUnreliable() {
  const proxy = await startLossyProxy(env.MILLRACE_URL, ['/claims', '/reports'])
  return { env: { ...env, MILLRACE_URL: proxy.url }, lost: proxy.lost }
}

/** Asserts that a job was claimed and reported once, although two answers were lost. */
async function assertOnce(id: string, lost: readonly string[]): Promise<void> {
  // A job has ended before the answer to its report arrives.
  await until('both answers are lost', () => lost.length === 2)
  assert.equal((await readJob(id)).attempt, 1)
}

/** Cancels a running job and stops the worker during another, whose id it returns. */
async function cancelOneAndStop(queue: string, worker: WorkerProcess): Promise<string> {
  const cancelled = await enqueue(queue, 'wait')
  await waitFor(cancelled, 'running')
  await owner.fetch(`/api/v1/jobs/${cancelled}`, { method: 'DELETE' })
  await waitFor(cancelled, 'cancelled')
  const given = await enqueue(queue, 'wait')
  await waitFor(given, 'running')
  assert.equal(await worker.stop(), 0, worker.log.join('\n'))
  return given
}

test('a TypeScript worker gives its jobs back at SIGTERM', async () => {
  const queue = await addQueue()
  const program = `import { createClient } from ${JSON.stringify(entry)}
    const client = createClient({ baseUrl: process.env.MILLRACE_URL, key: process.env.MILLRACE_KEY })
    const wait = (_, { signal }) => new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    const deaf = () => new Promise(() => {})
    await client.work('${queue}', { wait, deaf, add: ({ a, b }) => a + b }, { stopSeconds: 0 }).done`
  const worker = startProgram(process.execPath, ['--input-type=module', '-e', program], env)
  const [wait, deaf] = [await enqueue(queue, 'wait'), await enqueue(queue, 'deaf')]
  assert.equal(await client.jobs.result(await enqueue(queue, 'add', { a: 1, b: 2 })), 3)
  for (const id of [wait, deaf]) await waitFor(id, 'running')
  // A promise that never settles keeps no process alive.
  assert.equal(await worker.stop(), 0, worker.log.join('\n'))
  for (const id of [wait, deaf]) {
    const { status, tries, interruptions } = await readJob(id)
    assert.deepEqual([status, tries, interruptions], ['available', 0, 0])
  }
  assert.deepEqual(await query('select from worker_lease where queue = $1', [queue]), [])
})

test("the README's TypeScript worker runs", async () => {
  const queue = await addQueue()
  const text = readExample(fileURLToPath(new URL('../client/README.md', import.meta.url)), 'ts', queue)
  const program = text.replace("'millrace-client'", JSON.stringify(entry))
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', program]
  const worker = startProgram(process.execPath, args, env)
  assert.deepEqual(await client.jobs.result(await enqueue(queue, 'measure', { url: 'data:,abc' })), {
    bytes: 3,
  })
  assert.equal(await worker.stop(), 0, worker.log.join('\n'))
})

test('a Python worker runs jobs, and stops at SIGTERM', { skip: python }, async () => {
  const queue = await addQueue()
  const program = `import os, sys, time
sys.path.insert(0, ${JSON.stringify(join(EXAMPLES, 'python'))})
from millrace_worker import PermanentError, Worker

def draw(args, job):
    job.progress("Half", 1, 2)
    job.emit("tile", {"x": args["x"]})
    job.log("Looks odd", {"colour": "red"}, "warn")
    return [job.attempt, job.dependencies]

def fail(args, job):
    if job.attempt == 1:
        raise ValueError("Not yet")
    raise PermanentError("No such image")

def wait(args, job):
    job.cancelled.wait()

Worker(os.environ["MILLRACE_URL"], os.environ["MILLRACE_KEY"], "${queue}",
       {"draw": draw, "fail": fail, "wait": wait}, concurrency=3, lease_seconds=5, stop_seconds=0).run()
`
  const unreliable = await startUnreliable()
  const worker = startProgram('python3', ['-c', program], unreliable.env)
  const drawn = await enqueue(queue, 'draw', { x: 1 })
  assert.deepEqual(await client.jobs.result(drawn), [1, []])
  const events = [
    { kind: 'status', data: { status: 'running', label: 'Half', current: 1, total: 2 } },
    { kind: 'tile', data: { x: 1 } },
  ]
  assert.deepEqual([await readEvents(drawn), (await readLog(drawn)).length], [events, 1])
  await assertOnce(drawn, unreliable.lost)
  const failed = await waitFor(await enqueue(queue, 'fail'), 'failed')
  assert.deepEqual([failed.attempt, failed.detail], [2, 'No such image'])
  const given = await cancelOneAndStop(queue, worker)
  const { status, tries } = await readJob(given)
  assert.deepEqual([status, tries], ['available', 0])
})

test("the README's Python worker runs", { skip: python }, async () => {
  const queue = await addQueue()
  const text = readExample(join(EXAMPLES, 'python/README.md'), 'python', queue)
  const worker = startProgram('python3', ['-c', text], { ...env, PYTHONPATH: join(EXAMPLES, 'python') })
  assert.deepEqual(await client.jobs.result(await enqueue(queue, 'measure', { url: 'data:,abc' })), {
    bytes: 3,
  })
  assert.equal(await worker.stop(), 0, worker.log.join('\n'))
})

test('a Python worker goes on with another lease after one has expired', { skip: python }, async () => {
  const queue = await addQueue()
  const program = `import os, sys
sys.path.insert(0, ${JSON.stringify(join(EXAMPLES, 'python'))})
from millrace_worker import Worker

def wait(args, job):
    return job.attempt if job.attempt > 1 else job.cancelled.wait()

Worker(os.environ["MILLRACE_URL"], os.environ["MILLRACE_KEY"], "${queue}", {"wait": wait},
       concurrency=1, lease_seconds=5).run()
`
  const worker = startProgram('python3', ['-c', program], env)
  const id = await enqueue(queue, 'wait')
  await waitFor(id, 'running')
  await query(`update worker_lease set expires_at = now() - interval '1 hour' where queue = $1`, [queue])
  assert.equal(await client.jobs.result(id), 2, worker.log.join('\n'))
  assert.equal(await worker.stop(), 0)
})

test('a shell worker runs jobs, and stops at SIGTERM', { skip: shell }, async () => {
  const queue = await addQueue()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-tasks-'))
  const tasks = {
    size: 'jq "{size: (.text | length)}"',
    fail: 'echo "No such image" >&2; exit 65',
    // Data that a shell would run.
    quote: `jq -r .text`,
    wait: 'sleep 60 & wait',
  }
  for (const [name, text] of Object.entries(tasks)) {
    writeFileSync(join(folder, name), `#!/usr/bin/env bash\n${text}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  const unreliable = await startUnreliable()
  const command = [join(EXAMPLES, 'shell/worker.sh'), queue, folder]
  const worker = startProgram('bash', command, { ...unreliable.env, RENEW_SECONDS: '1' })
  const sized = await enqueue(queue, 'size', { text: 'abc' })
  assert.deepEqual(await client.jobs.result(sized), { size: 3 })
  await assertOnce(sized, unreliable.lost)
  const touched = join(tmpdir(), `millrace-touched-${process.pid}`)
  const text = `'; touch ${touched}; "$(touch ${touched})" \`touch ${touched}\``
  assert.equal(await client.jobs.result(await enqueue(queue, 'quote', { text })), `${text}\n`)
  assert.ok(!existsSync(touched))
  const failed = await waitFor(await enqueue(queue, 'fail'), 'failed')
  assert.deepEqual([failed.attempt, failed.detail], [1, 'Exit status 65: No such image\n'])
  const given = await cancelOneAndStop(queue, worker)
  await until('the job is given back', async () => (await readJob(given)).status === 'available')
})
