import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import net from 'node:net'
import { after, describe, test } from 'node:test'
import { createStoreKinds, UNTYPED_PREFIX } from '../blobs.ts'
import { createTestDatabase } from '../database.ts'
import { startS3 } from '../s3.ts'
import { until } from '../until.ts'
import { type Api, createMultipart, startEdge } from './harness.ts'

/** HTTP uploads and downloads must behave the same with every blob store. */

const database = await createTestDatabase()
const { query } = database
const storeKindList = await createStoreKinds(database)
const MAX_BYTES = 7_000_000
const edgesByStore = new Map<string, Api>()
// Edges that write to one store and read from all.
const edgesReadingAll = new Map<string, Api>()
for (const { name, env } of storeKindList) {
  edgesByStore.set(
    name,
    await startEdge(database.url, { env: { ...env, MAX_UPLOAD_BYTES: String(MAX_BYTES) } }),
  )
  const all = { ...storeKindList[2]!.env, ...env, BLOB_STORE: env.BLOB_STORE ?? 'postgres' }
  edgesReadingAll.set(name, await startEdge(database.url, { env: all }))
}
const { token } = await edgesByStore.get('postgres')!.register('owner@example.com')
const countUnfinishedBlobs = async () =>
  (await query('select count(*)::int as n from blob where sha256 is null and not deleted'))[0]!.n

for (const kind of storeKindList) {
  describe(`documents in a store of kind ${kind.name}`, { concurrency: false }, () => {
    const api = edgesByStore.get(kind.name)!
    // Larger than one 5 MiB part of an S3 upload.
    const bytes = Buffer.concat([UNTYPED_PREFIX, randomBytes(6_000_000)])
    let id = 0
    let etag = ''
    const get = (headers: Record<string, string> = {}, method = 'GET', document = id) =>
      api.call(method, `/api/v1/documents/${document}/content`, { token, headers })

    test('are stored once per owner, with their digest', async () => {
      const answer = await api.upload(token, bytes, { name: 'large.bin' })
      assert.equal(answer.status, 201, answer.text)
      assert.equal(answer.json.sha256, createHash('sha256').update(bytes).digest('hex'))
      id = answer.json.id
      etag = `"${answer.json.sha256}"`
      assert.equal((await api.upload(token, bytes)).status, 200)
      const [row] = await query(
        `select store, upload_id, deleted from blob where sha256 = decode($1, 'hex')`,
        [answer.json.sha256],
      )
      assert.deepEqual(row, { store: kind.env.BLOB_STORE ?? 'postgres', upload_id: null, deleted: false })
      assert.deepEqual([await kind.count(), await countUnfinishedBlobs()], [1, 0])
    })

    test('can be read completely and by range', async () => {
      const whole = await get()
      assert.equal(whole.status, 200)
      assert.equal(Buffer.compare(whole.bytes, bytes), 0)
      assert.deepEqual([whole.headers.etag, whole.headers['accept-ranges']], [etag, 'bytes'])
      const size = bytes.length
      for (const [range, from, to] of [
        ['bytes=0-0', 0, 1],
        ['bytes=5242879-5242880', 5_242_879, 5_242_881],
        ['bytes=-1', size - 1, size],
        ['bytes=100-5499999', 100, 5_500_000],
      ] as const) {
        const part = await get({ range })
        assert.deepEqual([part.status, part.headers['content-length']], [206, String(to - from)], range)
        assert.equal(part.headers['content-range'], `bytes ${from}-${to - 1}/${size}`)
        assert.equal(Buffer.compare(part.bytes, bytes.subarray(from, to)), 0, range)
      }
      assert.equal((await get({ range: `bytes=${size}-` })).status, 416)
    })

    test('support ETags, conditional requests and HEAD', async () => {
      assert.deepEqual(
        [(await get({ 'if-none-match': etag })).status, (await get({ 'if-none-match': '"x"' })).status],
        [304, 200],
      )
      assert.equal((await get({ range: 'bytes=0-9', 'if-range': etag })).status, 206)
      assert.equal((await get({ range: 'bytes=0-9', 'if-range': '"x"' })).status, 200)
      const head = await get({ range: 'bytes=0-9' }, 'HEAD')
      assert.deepEqual(
        [head.status, head.headers['content-length'], head.bytes.length],
        [200, String(bytes.length), 0],
      )
      assert.equal(head.headers['x-content-type-options'], 'nosniff')
      assert.match(head.headers['content-disposition'] as string, /^attachment; /)
    })

    test('are rejected without a trace if empty, too large or invalid', async () => {
      const before = await kind.count()
      assert.equal((await api.upload(token, '')).status, 400)
      assert.equal((await api.upload(token, randomBytes(MAX_BYTES + 1))).status, 413)
      assert.equal((await api.upload(token, 'x', { fields: { kind: 'k'.repeat(33) } })).status, 422)
      assert.deepEqual([await kind.count(), await countUnfinishedBlobs()], [before, 0])
    })

    test('leave nothing behind when the client disconnects during the upload', async () => {
      const before = await kind.count()
      const { body, type } = createMultipart(randomBytes(MAX_BYTES - 1000))
      const socket = net.connect(api.port, '127.0.0.1')
      socket.write(
        `POST /api/v1/documents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`,
      )
      socket.write(body.subarray(0, 6_500_000))
      await until('some bytes are stored', async () => (await kind.count()) > before)
      socket.destroy()
      await until(
        'no bytes are stored',
        async () => (await kind.count()) === before && (await countUnfinishedBlobs()) === 0,
      )
    })

    test('are 502 when their bytes are lost, and work again after another upload', async () => {
      await kind.deleteAll()
      for (const [method, headers] of [
        ['GET', {}],
        ['HEAD', {}],
        ['GET', { range: 'bytes=10-20' }],
      ] as const) {
        const answer = await get(headers, method)
        assert.equal(answer.status, 502, method)
        if (method === 'GET')
          assert.deepEqual(answer.json, {
            detail: 'The document is missing from storage',
            code: 'document.bytes_missing',
          })
      }
      assert.equal((await get({ 'if-none-match': etag })).status, 304)
      const again = await api.upload(token, bytes)
      assert.deepEqual([again.status, again.json.id], [200, id])
      assert.equal(Buffer.compare((await get()).bytes, bytes), 0)
    })

    test('can be read by edges that write to another store, and share bytes with uploads there', async () => {
      const text = `stored in ${kind.name}`
      const { json } = await api.upload(token, text)
      for (const [name, other] of edgesReadingAll) {
        const content = await other.get(`/api/v1/documents/${json.id}/content`, { token })
        assert.deepEqual([content.status, content.text], [200, text], name)
        assert.equal((await other.upload(token, text)).status, 200)
      }
      const [row] = await query(
        `select count(*)::int as n, min(store) as store from blob where sha256 = decode($1, 'hex')`,
        [json.sha256],
      )
      assert.deepEqual(row, { n: 1, store: kind.env.BLOB_STORE ?? 'postgres' })
    })
  })
}

test('stored files are readable by the service only', async () => {
  const file = storeKindList.find(({ name }) => name === 'file')!
  assert.equal(statSync(file.env.BLOB_STORE!.slice('file:'.length)).isDirectory(), true)
  await query(`update blob set key = gen_random_uuid() where store like 'file:%'`)
  const [row] = await query(
    `select d.id from document d join blob b using (sha256) where b.store like 'file:%' limit 1`,
  )
  const answer = await edgesByStore.get('file')!.get(`/api/v1/documents/${row!.id}/content`, { token })
  assert.equal(answer.status, 502)
})

describe('a store that does not respond', { concurrency: false }, async () => {
  const server = await startS3()
  after(() => server.stop())
  const api = await startEdge(database.url, { env: server.env })

  test('makes uploads and downloads 503, and uploads leave nothing behind', async () => {
    const { json } = await api.upload(token, 'before the outage')
    server.failing = true
    for (const answer of [
      await api.upload(token, 'in the outage'),
      await api.get(`/api/v1/documents/${json.id}/content`, { token }),
      await api.call('HEAD', `/api/v1/documents/${json.id}/content`, { token }),
    ]) {
      assert.equal(answer.status, 503)
      assert.notEqual(answer.headers['retry-after'], undefined)
    }
    assert.equal(await countUnfinishedBlobs(), 0)
    server.failing = false
    const content = await api.get(`/api/v1/documents/${json.id}/content`, { token })
    assert.deepEqual([content.status, content.text], [200, 'before the outage'])
    assert.equal(server.files().length, 1)
  })

  test('stores nothing for callers without permission', async () => {
    const wrong = await startEdge(database.url, { env: { ...server.env, S3_SECRET_KEY: 'wrong' } })
    assert.equal((await wrong.upload(token, 'who goes there')).status, 503)
    assert.equal(server.files().length, 1)
  })

  test('receives no request if the client already has the bytes', async () => {
    const { json } = await api.upload(token, 'asked for twice')
    server.requests.length = 0
    const headers = { 'if-none-match': `"${json.sha256}"` }
    assert.equal((await api.get(`/api/v1/documents/${json.id}/content`, { token, headers })).status, 304)
    assert.deepEqual(server.requests, [])
  })
})

test('a folder that cannot be created is 503', async () => {
  const api = await startEdge(database.url, { env: { BLOB_STORE: 'file:/etc/passwd/blobs' } })
  assert.equal((await api.upload(token, 'no place to be')).status, 503)
})
