import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTestDatabase } from '../database.ts'
import { findFreePort } from '../free-port.ts'
import { createKeepAliveClient } from '../keep-alive-client.ts'
import { type Child, Client, type Frame, startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'

/** Every process is replaced under load: no request fails, and no job is lost or done twice. */

const { url, query } = await createTestDatabase()
const PORT = await findFreePort()
const startEdge = () => startProcess('edge', url, { PORT: String(PORT), SHARE_PORT: 'true' })
const startWorker = () =>
  startProcess('worker', url, { WORKER_QUEUES: 'load_test,system', WORKER_THREADS: '1' })
// Each replacement starts before the old process stops.
const [serving, working] = [[await startEdge()], [await startWorker()]]
const client = new Client(PORT)
await client.register('tester@example.com')

const TASK_BODY = { task_name: 'io_simulation_task', queue_type: 'load_test' }
const postedIds: string[] = []
const failures: string[] = []
const streams: (readonly Frame[])[] = []
let over = false

/** Adds tasks and reads their status, one request at a time. */
async function keepEnqueueing(): Promise<void> {
  const { ask, close } = createKeepAliveClient(PORT, client.token)
  const askFor = async (status: number, ...what: Parameters<typeof ask>): Promise<{ task_id: string }> => {
    const answer = await ask(...what).catch((error: Error) => ({ status: 0, text: error.message }))
    if (answer.status === status) return JSON.parse(answer.text) as { task_id: string }
    failures.push(`${what[0]} ${what[1]}: ${answer.status} ${answer.text}`)
    return { task_id: '' }
  }
  while (!over) {
    const { task_id } = await askFor(202, 'POST', '/api/v1/tasks/enqueue', {
      ...TASK_BODY,
      args: { duration_ms: 5 },
    })
    postedIds.push(task_id)
    await askFor(200, 'GET', `/api/v1/tasks/result/${task_id}`)
    await delay(30)
  }
  close()
}

/** Follows one task at a time to its end, and resumes a broken stream after its last event. */
async function keepFollowing(): Promise<void> {
  const { ask, close } = createKeepAliveClient(PORT, client.token)
  while (!over) {
    const body = { ...TASK_BODY, args: { operations: 5, duration_ms: 500 } }
    const { task_id } = JSON.parse((await ask('POST', '/api/v1/tasks/enqueue', body)).text) as {
      task_id: string
    }
    postedIds.push(task_id)
    const frames: Frame[] = []
    for (let lastId = ''; !isOver(frames); lastId = frames.at(-1)?.id ?? '') {
      const headers = lastId === '' ? {} : { 'last-event-id': lastId }
      const stream = await client.stream(`/api/v1/jobs/${task_id}/events`, headers).catch(returnNullIfReset)
      frames.push(...((await stream?.waitForEnd()) ?? []))
    }
    streams.push(frames)
  }
  close()
}

/** Returns null if the connection was reset, like `createKeepAliveClient`. */
function returnNullIfReset(error: Error): null {
  if ((error.cause as NodeJS.ErrnoException | undefined)?.code !== 'ECONNRESET') throw error
  return null
}

const isOver = (frames: readonly Frame[]): boolean => frames.at(-1)?.data.status === 'done'

async function replaceProcess(children: Child[], start: () => Promise<Child>): Promise<void> {
  children.push(await start())
  const old = children.shift()!
  await old.kill('SIGTERM')
  assert.equal(old.process.exitCode, 0)
}

test('replacing every process fails no request and loses no job', async () => {
  const clients = [keepEnqueueing, keepEnqueueing, keepEnqueueing, keepFollowing, keepFollowing].map((run) =>
    run().catch((error: Error) => failures.push(`${error} ${error.cause ?? ''}`)),
  )
  await until('the load is running', () => postedIds.length > 20)
  await Promise.all([replaceProcess(serving, startEdge), replaceProcess(working, startWorker)])
  await until('there was enough load', () => postedIds.length > 100 && streams.length > 1)
  over = true
  await Promise.all(clients)

  assert.deepEqual(failures, [])
  for (const frames of streams) crash.assertComplete(frames)
  const jobs = "select count(*)::int as n from job where name = 'load_test.io_simulation_task'"
  await until('all jobs have ended', async () => (await query(`${jobs} and status <> 'done'`))[0]!.n === 0)
  assert.equal((await query(jobs))[0]!.n, postedIds.length, 'each request is one job')
  const ends = await query(
    `select job_id from job_event where data ->> 'status' = 'done' group by job_id having count(*) > 1`,
  )
  assert.deepEqual(ends, [])
})
