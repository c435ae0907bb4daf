import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { writeClient } from '../client/main.ts'
import type { Tasks, Worker, WorkOptions } from '../client/work-types.ts'
import type { Client } from '../service.ts'
import { shareByFiles } from '../services.ts'
import { until } from '../until.ts'
import { getSharedService } from './shared-service.ts'

/** A service, the generated client, and its workers of worker queues. */

/** The part of the generated client that these tests use. Its types exist only after it is generated. */
export interface WorkClient {
  readonly jobs: { result<T>(id: string): Promise<T> }
  work(queue: string, tasks: Tasks, options?: WorkOptions): Worker
}

interface Package {
  createClient(options: { baseUrl: string; key: string; fetch?: typeof fetch }): WorkClient
  readonly PermanentError: new (message: string, options?: { code?: string }) => Error
}

const ROOT = new URL('../../', import.meta.url)
const MODULES = fileURLToPath(new URL('node_modules', ROOT))
// The shortest that the service allows.
const LEASE_SECONDS = 5

/** Generates the client once for all files of this process, and returns its entry file. */
const generate = shareByFiles(async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'millrace-worker-')), 'package')
  await writeClient(folder)
  symlinkSync(MODULES, join(folder, 'node_modules'))
  return pathToFileURL(join(folder, 'dist/index.js')).href
})

export interface JobRow {
  readonly status: string
  readonly attempt: number
  readonly tries: number
  readonly interruptions: number
  readonly result: unknown
  readonly code: string | null
  readonly detail: string | null
}

/** Starts the service, and registers an owner of queues. */
export async function startWorkerClients() {
  const service = await getSharedService()
  const entry = await generate()
  const { createClient, PermanentError } = (await import(entry)) as Package
  const owner = await service.client()
  const { base: baseUrl, token: key } = owner
  const create = (options: { fetch?: typeof fetch; key?: string } = {}): WorkClient =>
    createClient({ baseUrl, key, ...options })
  const client = create()

  /** Starts a worker that stops after the test file at the latest. */
  const work = (queue: string, tasks: Tasks, options: WorkOptions = {}, by = client): Worker => {
    const worker = by.work(queue, tasks, {
      leaseSeconds: LEASE_SECONDS,
      handleSignals: false,
      onError: () => {},
      ...options,
    })
    after(() => worker.stop().catch(() => {}))
    return worker
  }

  const readJob = async (id: string): Promise<JobRow> => {
    const [row] = await service.query(
      `select status, attempt, tries, interruptions, result, error_code as code, error_detail as detail from job where id = $1`,
      [id],
    )
    return row as unknown as JobRow
  }

  return {
    ...service,
    owner,
    entry,
    client,
    create,
    work,
    readJob,
    PermanentError,
    addQueue: (more: object = {}) => addQueue(owner, createQueueName(), more),
    enqueue: (queue: string, task: string, args: object = {}, more: object = {}) =>
      enqueue(owner, queue, { task_name: task, args, ...more }),
    waitFor: (id: string, status: string) =>
      until(`the job is ${status}`, async () => {
        const job = await readJob(id)
        return job.status === status && job
      }),
    env: { MILLRACE_URL: baseUrl, MILLRACE_KEY: await createWorkKey(owner) },
  }
}

/** Creates an API key that may only work for queues. */
async function createWorkKey(owner: Client): Promise<string> {
  const answer = await owner.post('/api/v1/auth/keys', { name: 'worker', scopes: ['worker-queues:work'] })
  assert.equal(answer.status, 201, await answer.clone().text())
  return ((await answer.json()) as { key: string }).key
}

/** Names are unique in the service, which the files of a process share. */
const createQueueName = () => `work-${randomUUID()}`

async function addQueue(owner: Client, name: string, more: object): Promise<string> {
  const answer = await owner.post('/api/v1/worker-queues', { name, open: true, ...more })
  assert.equal(answer.status, 201, await answer.clone().text())
  return name
}

/** Adds jobs and returns the id of the first. */
async function enqueue(owner: Client, queue: string, job: object): Promise<string> {
  const answer = await owner.post('/api/v1/tasks/enqueue', { queue_type: queue, ...job })
  assert.equal(answer.status, 202, await answer.clone().text())
  return ((await answer.json()) as { task_id: string }).task_id
}
