import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { buildTextPdf } from './pdfs.ts'
import { Client } from './service.ts'
import { TERMINAL_STATUSES } from './sql/ledger-help.ts'
import { until } from './until.ts'

/**
 * Data that upgrade tests write through an edge: rows of several areas, and waiting jobs. A release's snapshot
 * (`test/data/releases`) keeps what that version wrote. Therefore check later additions only if they are present.
 */

const ADMIN = 'admin@example.com'
const OWNER = 'keeper@example.com'
const PDF = () => buildTextPdf(2, { line: (n) => `kept words of page ${n}` })
const WAITING_TASKS = ['documents.extract', 'load_test.io_simulation_task']

/**
 * Writes the data into a database without accounts. No worker may serve the queues `documents` and `load_test` during
 * the call.
 */
export async function writeUpgradeData(port: number): Promise<void> {
  const admin = new Client(port)
  await admin.register(ADMIN)
  const post = await expectStatus(
    admin.post('/api/v1/blog/posts', { title: 'Kept post', content: 'Kept content' }),
    201,
  )
  await expectStatus(admin.post(`/api/v1/blog/posts/${post.id}/publish`), 200)
  const keeper = new Client(port)
  await keeper.register(OWNER)
  await expectStatus(
    keeper.post('/api/v1/orgs', { name: 'Kept', slug: 'kept', description: 'Kept description' }),
    201,
  )
  const { id } = await expectStatus(keeper.upload(await PDF(), 'kept.pdf', { note: 'kept note' }), 201)
  await expectStatus(keeper.post(`/api/v1/documents/${id}/tags`, { label: 'kept' }), 200)
  await expectStatus(keeper.post(`/api/v1/documents/${id}/extract?background=true`), 202)
  const task = { task_name: 'io_simulation_task', queue_type: 'load_test', args: { duration_ms: 1 } }
  await expectStatus(keeper.post('/api/v1/tasks/enqueue', { ...task, delay_seconds: 1 }), 202)
}

async function expectStatus(asked: Promise<Response>, status: number): Promise<{ id: number }> {
  const response = await asked
  const text = await response.text()
  assert.equal(response.status, status, text)
  return JSON.parse(text) as { id: number }
}

/** Asserts that all data is present and that the waiting jobs finish. A worker must be running. */
export async function assertUpgradeData(port: number): Promise<void> {
  const keeper = new Client(port)
  await keeper.signIn(OWNER)
  const read = async <T>(path: string): Promise<T> => {
    const response = await keeper.fetch(path)
    assert.equal(response.status, 200, path)
    return (await response.json()) as T
  }
  const jobs = await until('the waiting jobs have finished', async () => {
    // Jobs without an owner are visible to every account, so filter by name.
    const all = (await read<Job[]>('/api/v1/jobs')).filter(({ name }) => WAITING_TASKS.includes(name))
    return all.every(({ status }) => TERMINAL_STATUSES.includes(status)) && all
  })
  assert.deepEqual(
    jobs.map(({ name, status }) => [name, status]).sort(),
    WAITING_TASKS.map((name) => [name, 'done']),
  )
  const [organization] = await read<{ slug: string; description: string }[]>('/api/v1/orgs')
  assert.deepEqual([organization!.slug, organization!.description], ['kept', 'Kept description'])

  // The word is on a page that the waiting job has read.
  const found = await read<{ items: Document[] }>('/api/v1/documents?search=kept&tag=kept')
  const [document] = found.items
  assert.deepEqual([document!.title, document!.note, document!.page_count], ['kept.pdf', 'kept note', 2])
  const page = await read<{ text: string }>(`/api/v1/documents/${document!.id}/pages/2`)
  assert.match(page.text, /kept words of page 2/)
  const content = await keeper.fetch(`/api/v1/documents/${document!.id}/content`)
  const bytes = Buffer.from(await content.arrayBuffer())
  assert.equal(createHash('sha256').update(bytes).digest('hex'), document!.sha256)

  const post = await read<{ content: string }>('/api/v1/blog/posts/kept-post')
  assert.equal(post.content, 'Kept content')
}

interface Job {
  readonly name: string
  readonly status: string
}

interface Document {
  readonly id: number
  readonly title: string
  readonly note: string
  readonly page_count: number
  readonly sha256: string
}
