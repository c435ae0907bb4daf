import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createCanvas } from '@napi-rs/canvas'
import { createEmail } from '../edge/harness.ts'
import { buildDeepPdf, buildEncryptedPdf, buildHugePagePdf, buildTruncatedPdf } from '../pdfs.ts'
import { Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { getSharedService } from './shared-service.ts'

const { query, url, worker } = await getSharedService()
// The edge runs in its own process, because the last test reads its peak memory.
const edge = await startProcess('edge', url)
const client = new Client(edge.ready.port!)
await client.register(createEmail('careless'))

const MAX_UPLOAD_BYTES = 100 * 1024 * 1024
const MAX_RSS_BYTES = 600 * 1024 * 1024

interface PageRow {
  readonly status: string
  readonly method: string
  readonly detail: string | null
}

/** Uploads bytes, extracts them and returns the pages. */
async function extractPages(bytes: Uint8Array, name: string): Promise<readonly PageRow[]> {
  const uploaded = await client.upload(bytes, name)
  assert.equal(uploaded.status, 201)
  const { id } = (await uploaded.json()) as { id: number }
  const extracted = await client.post(`/api/v1/documents/${id}/extract`)
  assert.equal(extracted.status, 200, await extracted.clone().text())
  return (await (await client.fetch(`/api/v1/documents/${id}/pages`)).json()) as PageRow[]
}

/** Asserts that there is one unread page whose reason is meaningful and reveals no internals. */
function assertUnread(pages: readonly PageRow[], reason: RegExp): void {
  assert.equal(pages.length, 1)
  assert.equal(pages[0]!.status, 'unread')
  assert.equal(pages[0]!.method, 'none')
  assert.match(pages[0]!.detail!, reason)
  assert.doesNotMatch(pages[0]!.detail!, /Error|node_modules|undefined/)
}

const readPeakRss = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

test('a truncated PDF gives pages or one unread page with a reason', async () => {
  const pages = await extractPages(await buildTruncatedPdf(), 'truncated.pdf')
  assert.ok(pages.length >= 1)
  for (const page of pages) assert.ok(page.status === 'read' || page.detail !== null)
})

test('an encrypted PDF gives one unread page that reports the encryption', async () => {
  assertUnread(await extractPages(buildEncryptedPdf(), 'secret.pdf'), /password/i)
})

test('a PNG named .pdf is read as an image', async () => {
  const canvas = createCanvas(200, 100)
  const context = canvas.getContext('2d')
  context.fillStyle = 'white'
  context.fillRect(0, 0, 200, 100)
  const png = canvas.toBuffer('image/png')
  const uploaded = (await (await client.upload(png, 'picture.pdf')).json()) as {
    id: number
    media_type: string
  }
  assert.equal(uploaded.media_type, 'image/png')
  assert.equal((await client.post(`/api/v1/documents/${uploaded.id}/extract`)).status, 200)
})

test('a page of 100,000 x 100,000 points neither exhausts memory nor kills the worker', async () => {
  assertUnread(await extractPages(await buildHugePagePdf(), 'huge.pdf'), /large|size/i)
})

for (const kind of ['arrays', 'content', 'tree'] as const) {
  test(`a PDF with deeply nested ${kind} gives a page, read or not`, async () => {
    const pages = await extractPages(buildDeepPdf(kind, 20_000), `deep-${kind}.pdf`)
    assert.ok(pages.length >= 1)
    for (const page of pages) assert.ok(page.status === 'read' || page.detail !== null)
  })
}

test('rejects an empty file', async () => {
  const response = await client.upload(new Uint8Array(), 'empty.pdf')
  assert.equal(response.status, 400)
  assert.deepEqual(await response.json(), { detail: 'The file is empty', code: 'document.empty' })
})

test('accepts 100 MiB and rejects one byte more', async () => {
  const whole = Buffer.alloc(MAX_UPLOAD_BYTES, 'x')
  assert.equal((await client.upload(whole, 'whole.txt')).status, 201)
  const response = await client.upload(Buffer.alloc(MAX_UPLOAD_BYTES + 1, 'y'), 'more.txt')
  assert.equal(response.status, 413)
  assert.match(((await response.json()) as { detail: string }).detail, /104857600 bytes/)
})

test('rejects a malformed boundary', async () => {
  const response = await client.fetch('/api/v1/documents', {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=one' },
    body: '--two\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--two--\r\n',
  })
  assert.equal(response.status, 400)
})

test('a client that disconnects during its upload leaves nothing behind', async () => {
  const socket = connect(edge.ready.port!, '127.0.0.1')
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="gone.bin"\r\n\r\n'
  socket.write(
    `POST /api/v1/documents HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${client.token}\r\n` +
      `content-type: multipart/form-data; boundary=b\r\ncontent-length: 50000000\r\n\r\n${head}`,
  )
  socket.write(Buffer.alloc(2_000_000, 'z'))
  await until(
    'the first bytes are stored',
    async () => (await query('select id from blob where sha256 is null')).length === 1,
  )
  socket.destroy()
  await until(
    'the bytes are removed',
    async () => (await query('select id from blob where sha256 is null')).length === 0,
  )
})

test('no process crashed, no data is left behind, and memory stayed within limits', async () => {
  assert.equal(edge.process.exitCode, null)
  assert.equal(worker.process.exitCode, null)
  const [blobs] = await query('select count(*)::int as n from blob where sha256 is null')
  const [chunks] = await query(
    'select count(*)::int as n from blob_chunk where blob_id not in (select id from blob)',
  )
  // Scheduled jobs come and go, so they are not counted.
  const [jobs] = await query(
    `select count(*)::int as n from job where status in ('available', 'running') and queue = 'documents'`,
  )
  assert.deepEqual([blobs!.n, chunks!.n, jobs!.n], [0, 0, 0])
  for (const { pid } of [edge.process, worker.process]) {
    assert.ok(
      readPeakRss(pid!) < MAX_RSS_BYTES,
      `process ${pid} took ${Math.round(readPeakRss(pid!) / 2 ** 20)} MiB`,
    )
  }
})
