import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../sql/connections/driver.ts'
import { dumpSchema } from '../../sql/server/dump.ts'
import { createEmptyDatabase, createTestDatabase } from '../database.ts'
import { createMultipart } from '../edge/harness.ts'
import { findFreePort } from '../free-port.ts'
import { createKeepAliveClient, RawBody } from '../keep-alive-client.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { assertUpgradeData, writeUpgradeData } from '../upgrade-data.ts'
import {
  type Command,
  CURRENT_VERSION,
  createContractedVersion,
  createExpandedVersion,
  runRelease,
  type Version,
} from '../versions.ts'

/**
 * Two upgrades under load, during which old and new processes run next to each other. No request fails, and each job is
 * done once.
 */

const { url, query } = await createTestDatabase()
const PORT = await findFreePort()
const nextVersion = createExpandedVersion()
const lastVersion = createContractedVersion(nextVersion)

const startEdge = (version: Version) =>
  startProcess('edge', url, { PORT: String(PORT), SHARE_PORT: 'true' }, [], [], version.root)
// Jobs of the queue `documents` wait until a worker serves all queues.
const startWorker = (version: Version, queues = '') =>
  startProcess('worker', url, { WORKER_QUEUES: queues, WORKER_THREADS: '1' }, [], [], version.root)
const LOAD_QUEUES = 'load_test,system'

let edges = [await startEdge(CURRENT_VERSION)]
await writeUpgradeData(PORT)
let workers = [await startWorker(CURRENT_VERSION, LOAD_QUEUES)]
const client = new Client(PORT)
await client.register('loader@example.com')

const TASK = { task_name: 'io_simulation_task', queue_type: 'load_test' }
const failures: string[] = []
const tasks: string[] = []
let rounds = 0
let over = false

/** Writes and reads in several areas, one request at a time. Reads must see the writes, whichever version answers. */
async function keepUsingService(name: string): Promise<void> {
  const { ask, close } = createKeepAliveClient(PORT, client.token)
  const askFor = async (status: number, ...what: Parameters<typeof ask>): Promise<Answered> => {
    const answer = await ask(...what).catch((error: Error) => ({ status: 0, text: error.message }))
    if (answer.status === status) return JSON.parse(answer.text) as Answered
    failures.push(`${what[0]} ${what[1]}: ${answer.status} ${answer.text}`)
    return {}
  }
  for (let n = 0; !over; n++) {
    const slug = `${name}-${n}`
    const { id } = await askFor(201, 'POST', '/api/v1/orgs', { name, slug, description: 'first' })
    await askFor(200, 'PATCH', `/api/v1/orgs/${id}?description=second`)
    const { description } = await askFor(200, 'GET', `/api/v1/orgs/${id}`)
    if (description !== 'second') failures.push(`${slug} is ${description}`)
    const { type, body } = createMultipart(`text of ${slug}`, { name: `${slug}.txt` })
    await askFor(201, 'POST', '/api/v1/documents', new RawBody(type, body))
    await askFor(200, 'GET', `/api/v1/documents?search=${slug}`)
    const { task_id } = await askFor(202, 'POST', '/api/v1/tasks/enqueue', {
      ...TASK,
      args: { duration_ms: 1 },
    })
    await askFor(200, 'GET', `/api/v1/tasks/result/${task_id}`)
    tasks.push(task_id!)
    rounds++
    await delay(250)
  }
  close()
}

interface Answered {
  readonly id?: number
  readonly description?: string
  readonly task_id?: string
}

/** Waits until the load has completed a few more rounds. */
const waitForRounds = (): Promise<unknown> => {
  const before = rounds
  return until('the load continues', () => rounds > before + 3)
}

/** Starts a version's processes next to the running ones, checks that they work, and stops the old ones. */
async function replaceProcesses(version: Version, queues?: string): Promise<void> {
  const [newEdge, newWorker] = await Promise.all([startEdge(version), startWorker(version, queues)])
  const [named] = await query('select name from worker_lease where id = $1', [newWorker.ready.lease])
  await until('the new worker gets jobs', async () => {
    const done = await query('select from job where worker = $1 limit 1', [named!.name])
    return done.length > 0
  })
  await until('the new edge gets requests', async () => {
    // The clients of the load keep their connections, so a new connection is needed to reach the new edge.
    const another = createKeepAliveClient(PORT, client.token)
    const { status, text } = await another.ask('GET', '/api/v1/orgs?limit=1')
    another.close()
    if (status !== 200) failures.push(text)
    return newEdge.log.some((line) => line.includes('/api/v1/orgs'))
  })
  await Promise.all([...edges, ...workers].map(stop))
  edges = [newEdge]
  workers = [newWorker]
}

async function stop(old: Child): Promise<void> {
  await old.kill('SIGTERM')
  assert.equal(old.process.exitCode, 0)
}

async function assertSucceeded({ log, ended }: Command): Promise<void> {
  assert.equal(await ended, 0, log.join('\n'))
}

/** Adds a job that runs until its worker stops. Its next attempt ends almost immediately. */
async function addRunningJob(): Promise<string> {
  const args = { operations: 10, duration_ms: 60_000 }
  const response = await client.post('/api/v1/tasks/enqueue', { ...TASK, args })
  const { task_id } = (await response.json()) as { task_id: string }
  tasks.push(task_id)
  await until('the job is running', async () => (await readStatus(task_id)) === 'running')
  await query(`update job set payload = jsonb_set(payload, '{duration_ms}', '1') where id = $1`, [task_id])
  return task_id
}

const readStatus = async (id: string): Promise<unknown> =>
  (await query('select status from job where id = $1', [id]))[0]!.status

test('each release runs next to processes of the previous version, which lose nothing', async () => {
  const load = ['a', 'b'].map((name) =>
    keepUsingService(name).catch((error: Error) => failures.push(`${error} ${error.cause ?? ''}`)),
  )
  try {
    await waitForRounds()
    await upgrade()
  } finally {
    over = true
    await Promise.all(load)
  }
  assert.deepEqual(failures, [])
  await assertAllDoneOnce()
  await assertUpgradeData(PORT)
})

async function upgrade(): Promise<void> {
  // An open transaction has read the tables that the release changes. The release must wait for it without blocking
  // others.
  const report = await connect({ url, applicationName: 'a long report' })
  await report.query('begin; select from organization limit 1')
  const expanding = runRelease(nextVersion, url)
  await until('the release waits', () => expanding.log.some((line) => line.includes('could not get a lock')))
  const running = await addRunningJob()
  await waitForRounds()
  await report.end()
  await assertSucceeded(expanding)
  assert.equal(await readStatus(running), 'running')
  const waiting = await query("select status from job where name = 'documents.extract'")
  assert.deepEqual(waiting, [{ status: 'available' }])
  await waitForRounds()

  // Rolls back to the previous version, which runs on the new schema with its own functions, and then forward.
  await replaceProcesses(CURRENT_VERSION, LOAD_QUEUES)
  await assertSucceeded(runRelease(CURRENT_VERSION, url))
  await waitForRounds()
  await assertSucceeded(runRelease(nextVersion, url))
  await replaceProcesses(nextVersion)
  await waitForRounds()

  await assertSucceeded(runRelease(lastVersion, url))
  await waitForRounds()
}

async function assertAllDoneOnce(): Promise<void> {
  const unfinished = `select count(*)::int as n from job where id = any($1) and status <> 'done'`
  await until('all jobs are done', async () => (await query(unfinished, [tasks]))[0]!.n === 0)
  assert.equal(new Set(tasks).size, (await query('select from job where id = any($1)', [tasks])).length)
  const twice = await query(
    `select job_id from job_event where data ->> 'status' = 'done' group by job_id having count(*) > 1`,
  )
  assert.deepEqual(twice, [])
}

test('an upgraded database has the schema of a new one', async () => {
  const fresh = await createEmptyDatabase()
  await assertSucceeded(runRelease(lastVersion, fresh))
  const [upgraded, made] = (await Promise.all([dumpSchema(url), dumpSchema(fresh)])).map((dump) =>
    dump.split('\n'),
  )
  assert.deepEqual(
    upgraded!.filter((line) => !made!.includes(line)),
    [],
  )
  assert.deepEqual(
    made!.filter((line) => !upgraded!.includes(line)),
    [],
  )
  assert.equal(upgraded!.length, made!.length)
})
