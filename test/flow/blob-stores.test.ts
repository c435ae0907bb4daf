import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { test } from 'node:test'
import { collectGarbage } from '../../tasks/documents/collect.task.ts'
import { enqueue } from '../../tasks/task.ts'
import { createStoreKinds, type StoreKind } from '../blobs.ts'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { createJobSettings } from '../job-settings.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { until } from '../until.ts'

const database = await createTestDatabase()
const { url, db, query } = database
const kinds = await createStoreKinds(database)
const worker = await startProcess('worker', url, {
  WORKER_QUEUES: 'system,documents',
  WORKER_THREADS: '1',
  ...kinds[2]!.env,
})

// Ports of the edges that no test kills. These edges run in this process.
const ports = new Map<StoreKind, number>()
for (const kind of kinds) ports.set(kind, (await startEdge(url, { env: kind.env })).port)
const admin = new Client(ports.get(kinds[0]!)!)
await admin.register('admin@example.com')

function createClient(port: number): Client {
  const client = new Client(port)
  client.token = admin.token
  return client
}

/** Runs the collection of unused blobs on the worker, as its schedule does; returns the job's result. */
async function runCollection(): Promise<unknown> {
  const { jobId } = await db.transaction((tx) =>
    enqueue(tx, collectGarbage, {}, { ownerId: null, settings: createJobSettings(1) }),
  )
  const job = await until('the collection is done', async () => {
    const [row] = await query('select status, result from job where id = $1 and finished_at is not null', [
      jobId,
    ])
    return row
  })
  assert.equal(job.status, 'done')
  return job.result
}

/** Sends the beginning of a large upload, and leaves it unfinished. */
async function beginUpload(edge: Child): Promise<void> {
  const socket = connect(edge.ready.port!, '127.0.0.1')
  socket.on('error', () => {})
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="cut.bin"\r\n\r\n'
  socket.write(
    `POST /api/v1/documents HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${admin.token}\r\n` +
      `content-type: multipart/form-data; boundary=b\r\ncontent-length: 90000000\r\n\r\n${head}`,
  )
  socket.write(randomBytes(12_000_000))
}

for (const kind of kinds) {
  test(`collection removes the upload to ${kind.name} of an edge that was killed`, async () => {
    const edge = await startProcess('edge', url, kind.env)
    const kept = randomBytes(6_000_000)
    const { id } = (await (await createClient(edge.ready.port!).upload(kept, 'kept.bin')).json()) as {
      id: number
    }
    const before = await kind.count()
    await beginUpload(edge)
    await until('the first bytes are stored', async () => (await kind.count()) > before)
    await edge.kill('SIGKILL')
    assert.deepEqual(await runCollection(), { documents: 0, blobs: 0, failed: 0 })
    assert.ok((await kind.count()) > before, 'a young upload may still be under way')

    await query(`update blob set created_at = created_at - interval '2 days'`)
    assert.deepEqual(await runCollection(), { documents: 0, blobs: 1, failed: 0 })
    assert.equal(await kind.count(), before)
    const content = await createClient(ports.get(kind)!).fetch(`/api/v1/documents/${id}/content`)
    assert.equal(Buffer.compare(Buffer.from(await content.arrayBuffer()), kept), 0)
  })

  test(`a worker with another store extracts a document in ${kind.name}; without its bytes the answer is 502`, async () => {
    const client = createClient(ports.get(kind)!)
    const { id } = (await (
      await client.upload(Buffer.from(`words kept in ${kind.name}`), 'a.txt')
    ).json()) as {
      id: number
    }
    const extracted = await client.post(`/api/v1/documents/${id}/extract`)
    assert.deepEqual(await extracted.json(), { read: 1, unread: 0, skipped: 0 })
    const page = (await (await client.fetch(`/api/v1/documents/${id}/pages/1`)).json()) as { text: string }
    assert.equal(page.text.trim(), `words kept in ${kind.name}`)
    await kind.deleteAll()
    const gone = await client.post(`/api/v1/documents/${id}/extract?force=true`)
    assert.deepEqual(
      [gone.status, await gone.json()],
      [502, { detail: 'The document is missing from storage', code: 'document.bytes_missing' }],
    )
    assert.equal((await client.fetch(`/api/v1/documents/${id}/content`)).status, 502)
  })
}

test('every process is still running', () => {
  assert.equal(worker.process.exitCode, null)
})
