import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { postBombs } from '../bombs.ts'
import { createTestDatabase } from '../database.ts'
import { documentBombs } from '../document-bombs.ts'
import { createFolder } from '../edge/rag-help.ts'
import { createClient, startReader } from '../flow/reader.ts'
import { buildTextPdf } from '../pdfs.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'

/** Sends bombs to a whole service. Each may fail its own job, but must not disturb others. */

const root = createFolder()
const { url, query } = await createTestDatabase()
// A page fails only after 28 s of CPU time, which takes much longer on a busy machine.
const env = { RAG_ROOT: root, RAG_EMBEDDINGS: 'lexical', REQUEST_WAIT_SECONDS: '280' }
const worker = await startProcess('worker', url, { ...env, WORKER_QUEUES: 'blog,documents,load_test,rag' })
const admin = await startReader(url, env)
const otherClient = await createClient(url, env)
await otherClient.register('stranger@example.com')

const findBomb = (name: string) => [...postBombs, ...documentBombs].find((one) => one.name === name)!

/** A job that outlasts the test. Its attempt number shows whether the worker survived. */
const unrelatedJob = (
  (await (
    await otherClient.post('/api/v1/tasks/enqueue', {
      task_name: 'io_simulation_task',
      queue_type: 'load_test',
      args: { operations: 100, duration_ms: 60_000 },
    })
  ).json()) as { task_id: string }
).task_id
await until(
  'the job runs',
  async () => (await query('select status from job where id = $1', [unrelatedJob]))[0]!.status === 'running',
)

async function importBomb(name: string, bytes: Uint8Array): Promise<Response> {
  const form = new FormData()
  form.set('file', new File([bytes as Uint8Array<ArrayBuffer>], name))
  return admin.fetch('/api/v1/blog/import', { method: 'POST', body: form })
}

test('a file of posts that takes too long is an error of its item, and the next import works', async () => {
  const { fileName, make } = findBomb('quotes on many lines')
  const response = await importBomb(fileName, make())
  assert.equal(response.status, 200)
  assert.deepEqual(await response.json(), {
    created: 0,
    updated: 0,
    skipped: 0,
    failed: 1,
    errors: [{ slug: 'bomb', file: 'bomb.md', message: 'The file takes more than 5 s of CPU time' }],
  })
  const good = (await (await importBomb('good.md', Buffer.from('# Good'))).json()) as { created: number }
  assert.equal(good.created, 1)
})

test('rejects a file with too deep nesting', async () => {
  const response = await importBomb('bomb.json', findBomb('9 million lists').make())
  assert.equal(response.status, 400)
  assert.deepEqual(await response.json(), {
    detail: 'The file cannot be imported: it is nested too deeply',
    code: 'import.refused',
  })
})

for (const [name, detail] of [
  ['a million pages', /claims 1000000 pages in 433 bytes/],
  ['two thousand million pages, without a trailer', /damaged/],
  ['10,000 pages of one strip', /the limit is 1000$/],
] as const) {
  test(`a document of ${name} becomes one unread page`, async () => {
    const { fileName, make } = findBomb(name)
    const { id } = (await (await otherClient.upload(make(), fileName)).json()) as { id: number }
    const extracted = await otherClient.post(`/api/v1/documents/${id}/extract`)
    assert.deepEqual(await extracted.json(), { read: 0, unread: 1, skipped: 0 })
    const [row] = await query('select page_count from document where id = $1', [id])
    assert.equal(row!.page_count, 1)
    const [page] = await query('select detail from document_page where document_id = $1', [id])
    assert.match(page!.detail as string, detail)
  })
}

test('a page that exceeds its limits is unread, and other documents are read at the same time', async () => {
  const { fileName, make } = findBomb('zeros that are packed five times')
  const { id } = (await (await otherClient.upload(make(), fileName)).json()) as { id: number }
  const bursting = otherClient.post(`/api/v1/documents/${id}/extract`)
  const other = (await (await admin.upload(await buildTextPdf(20), 'good.pdf')).json()) as { id: number }
  const read = await admin.post(`/api/v1/documents/${other.id}/extract`)
  assert.deepEqual(await read.json(), { read: 20, unread: 0, skipped: 0 })
  assert.deepEqual(await (await bursting).json(), { read: 0, unread: 1, skipped: 0 })
})

test('a file that cannot be parsed is skipped, and the other files are indexed', async () => {
  writeFileSync(join(root, 'bomb.md'), '# a\n'.repeat(600_000))
  writeFileSync(join(root, 'good.md'), '# Good\n\nnews')
  const response = await admin.post('/rag/index', { path: '.', collection_name: 'all' })
  const { documents_added, skipped } = (await response.json()) as {
    documents_added: number
    skipped: unknown
  }
  assert.equal(documents_added, 1)
  assert.deepEqual(skipped, [{ source: 'bomb.md', reason: 'more than 500000 lines' }])
})

test('the worker survives, and an unrelated job is undisturbed', async () => {
  const [row] = await query('select status, attempt, interruptions from job where id = $1', [unrelatedJob])
  assert.deepEqual(row, { status: 'running', attempt: 1, interruptions: 0 })
  assert.equal(worker.process.exitCode, null)
  assert.equal(worker.process.signalCode, null)
})
