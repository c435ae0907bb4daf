import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import { test } from 'node:test'
import { UNTYPED_PREFIX } from '../blobs.ts'
import { createEmail, getSharedEdge, type UploadOptions } from './harness.ts'

const { api, query } = await getSharedEdge()
const { token } = await api.register(createEmail('owner'))
const bytes = Buffer.concat([UNTYPED_PREFIX, randomBytes(700_000)])
const SIZE = bytes.length
const { id, sha256 } = (await api.upload(token, bytes, { name: 'data.bin' })).json
const ETAG = `"${sha256}"`
const get = (headers: http.OutgoingHttpHeaders = {}, document = id, method = 'GET') =>
  api.call(method, `/api/v1/documents/${document}/content`, { token, headers })

test('GET returns the content with its type, length and ETag', async () => {
  const answer = await get()
  assert.equal(answer.status, 200)
  assert.equal(Buffer.compare(answer.bytes, bytes), 0)
  assert.equal(answer.headers['content-type'], 'application/octet-stream')
  assert.equal(answer.headers['content-length'], String(SIZE))
  assert.equal(answer.headers.etag, ETAG)
  assert.equal(answer.headers['accept-ranges'], 'bytes')
  assert.equal(answer.headers['cache-control'], 'private, no-cache')
  assert.equal(answer.headers['content-range'], undefined)
})

test('the bytes are stored in chunks of equal size', async () => {
  const chunks = await query(
    `select length(c.bytes) as n from blob_chunk c join blob b on b.id = c.blob_id where b.sha256 = decode($1, 'hex') order by ordinal`,
    [sha256],
  )
  assert.deepEqual(
    chunks.map(({ n }) => n),
    [262_144, 262_144, SIZE - 2 * 262_144],
  )
})

test('HEAD has the same headers and no body', async () => {
  const [whole, head] = [await get(), await get({}, id, 'HEAD')]
  const same = ({ 'x-request-id': _, date: __, ...headers }: http.IncomingHttpHeaders) => headers
  assert.deepEqual(same(head.headers), same(whole.headers))
  assert.deepEqual([head.status, head.bytes.length], [200, 0])
})

test('HEAD ignores Range', async () => {
  for (const range of ['bytes=0-9', `bytes=${SIZE}-`]) {
    const { status, headers, bytes: none } = await get({ range }, id, 'HEAD')
    assert.deepEqual([status, headers['content-length'], none.length], [200, String(SIZE), 0], range)
    assert.equal(headers['content-range'], undefined)
  }
  assert.equal((await get({ 'if-none-match': ETAG }, id, 'HEAD')).status, 304)
})

test('a matching ETag gives 304', async () => {
  for (const tag of [ETAG, `W/${ETAG}`, `"other", ${ETAG}`, '*']) {
    const answer = await get({ 'if-none-match': tag })
    assert.deepEqual([answer.status, answer.bytes.length, answer.headers.etag], [304, 0, ETAG], tag)
  }
  assert.equal((await get({ 'if-none-match': ETAG, range: 'bytes=0-1' })).status, 304)
})

test('another ETag gives the content', async () => {
  for (const tag of ['"other"', sha256, ETAG.slice(0, -2), ''])
    assert.equal((await get({ 'if-none-match': tag })).status, 200, tag)
})

test('a range is served within a chunk, across chunks, and with either end open', async () => {
  const ranges: readonly [string, number, number][] = [
    ['bytes=0-0', 0, 1],
    ['bytes=0-99', 0, 100],
    ['bytes=262143-262144', 262_143, 2],
    ['bytes=262144-262144', 262_144, 1],
    ['bytes=100000-600000', 100_000, 500_001],
    [`bytes=${SIZE - 1}-`, SIZE - 1, 1],
    ['bytes=500000-', 500_000, SIZE - 500_000],
    ['bytes=-1', SIZE - 1, 1],
    ['bytes=-300000', SIZE - 300_000, 300_000],
    [`bytes=-${SIZE * 2}`, 0, SIZE],
    ['bytes=0-999999999', 0, SIZE],
  ]
  for (const [range, from, length] of ranges) {
    const answer = await get({ range })
    assert.equal(answer.status, 206, range)
    assert.equal(answer.headers['content-range'], `bytes ${from}-${from + length - 1}/${SIZE}`)
    assert.equal(answer.headers['content-length'], String(length))
    assert.equal(answer.headers.etag, ETAG)
    assert.equal(Buffer.compare(answer.bytes, bytes.subarray(from, from + length)), 0, range)
  }
})

test('a range outside the content is 416 with the total length', async () => {
  for (const range of [`bytes=${SIZE}-`, `bytes=${SIZE}-${SIZE + 5}`, 'bytes=99999999999-', 'bytes=-0']) {
    const answer = await get({ range })
    assert.equal(answer.status, 416, range)
    assert.equal(answer.headers['content-range'], `bytes */${SIZE}`)
    assert.deepEqual(answer.json, { detail: 'The range lies outside the content', code: 'request.range' })
  }
})

test('an invalid or multiple range is ignored and gives the whole content', async () => {
  for (const range of [
    'bytes=5-3',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'items=0-1',
    '0-1',
    'bytes=0-1,5-6',
    'bytes=1',
    'bytes=--1',
  ]) {
    const answer = await get({ range })
    assert.deepEqual([answer.status, answer.bytes.length], [200, SIZE], range)
  }
})

test('If-Range serves the range if the ETag matches, otherwise the whole content', async () => {
  const range = 'bytes=0-9'
  assert.equal((await get({ range, 'if-range': ETAG })).status, 206)
  for (const tag of ['"other"', `W/${ETAG}`, 'Wed, 21 Oct 2015 07:28:00 GMT']) {
    const answer = await get({ range, 'if-range': tag })
    assert.deepEqual([answer.status, answer.bytes.length], [200, SIZE], tag)
  }
})

const readContentHeaders = async (content: string | Uint8Array, options: UploadOptions) => {
  const document = (await api.upload(token, content, options)).json
  const { headers } = await get({}, document.id, 'HEAD')
  return {
    document,
    type: headers['content-type'],
    disposition: headers['content-disposition'] as string,
    headers,
  }
}

test('safe types are shown inline, other types are downloads, and sniffing and scripts are disabled', async () => {
  const cases: readonly [string | Buffer, string, RegExp, string][] = [
    ['%PDF-1.4\n', 'a.pdf', /^application\/pdf$/, 'inline'],
    [Buffer.from('GIF89a\x01\0\x01\0\0\0\0;', 'latin1'), 'a.gif', /^image\/gif$/, 'inline'],
    ['plain words', 'a.txt', /^text\/plain; charset=utf-8$/, 'inline'],
    ['<html><script>alert(1)</script></html>', 'a.html', /^text\/html; charset=utf-8$/, 'attachment'],
    [
      '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
      'a.svg',
      /^(application|image|text)\/(xml|svg\+xml|plain; charset=utf-8)$/,
      'any',
    ],
    [Buffer.from('504b0304140000000000', 'hex'), 'a.zip', /^application\/zip$/, 'attachment'],
    [UNTYPED_PREFIX, 'a.exe', /^application\/octet-stream$/, 'attachment'],
  ]
  for (const [content, name, type, disposition] of cases) {
    const answer = await readContentHeaders(content, { name })
    assert.match(answer.type as string, type, name)
    if (disposition !== 'any') assert.equal(answer.disposition.split(';')[0], disposition, name)
    else assert.ok(answer.disposition.startsWith('attachment') || answer.type === 'text/plain; charset=utf-8')
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    assert.equal(answer.headers['content-security-policy'], "default-src 'none'; sandbox")
  }
})

test('a document type that can run scripts is always a download, whatever the source of its type', async () => {
  const { document } = await readContentHeaders('<p>older row</p>', { name: 'old.html' })
  for (const type of [
    'text/html',
    'image/svg+xml',
    'application/xhtml+xml',
    'text/xml',
    'application/javascript',
  ]) {
    await query('update document set media_type = $2 where id = $1', [document.id, type])
    const { headers } = await get({}, document.id, 'HEAD')
    assert.match(headers['content-disposition'] as string, /^attachment; /, type)
    assert.equal(headers['x-content-type-options'], 'nosniff')
  }
})

test('a title in any script reaches the client, quoted so that it cannot break the header', async () => {
  const titles: readonly [string, string, string][] = [
    ['Résumé 履歴書.txt', 'R_sum_ ___.txt', 'R%C3%A9sum%C3%A9%20%E5%B1%A5%E6%AD%B4%E6%9B%B8.txt'],
    ['a"b\\c;d.txt', 'a_b_c;d.txt', 'a%22b%5Cc%3Bd.txt'],
    ["it's (1)*.txt", "it's (1)*.txt", 'it%27s%20%281%29%2A.txt'],
    ['two\r\nlines: x', 'two__lines: x.txt', 'two%0D%0Alines%3A%20x.txt'],
    ['100%.txt', '100_.txt', '100%25.txt'],
    ['🙂', '__.txt', '%F0%9F%99%82.txt'],
  ]
  for (const [title, ascii, extended] of titles) {
    const { disposition } = await readContentHeaders(`content of ${title}`, { fields: { title } })
    assert.equal(disposition, `inline; filename="${ascii}"; filename*=UTF-8''${extended}`, title)
  }
})

test('missing bytes are 502', async () => {
  const { document } = await readContentHeaders('soon gone', {})
  await query(`delete from blob where sha256 = decode($1, 'hex')`, [document.sha256])
  const answer = await get({}, document.id)
  assert.deepEqual(
    [answer.status, answer.json],
    [502, { detail: 'The document is missing from storage', code: 'document.bytes_missing' }],
  )
})

test('a missing first chunk is 502; a later one cuts the connection, because the length has been sent', async () => {
  for (const [ordinal, expected] of [
    [0, /^502 /],
    [1, /^cut$/],
  ] as const) {
    const { document } = await readContentHeaders(randomBytes(600_000), { name: 'torn.bin' })
    await query(
      `delete from blob_chunk where ordinal = $2 and blob_id = (select id from blob where sha256 = decode($1, 'hex'))`,
      [document.sha256, ordinal],
    )
    const outcome = await Promise.race([
      get({}, document.id).then(
        ({ status, bytes: got }) => `${status} with ${got.length} bytes`,
        () => 'cut',
      ),
      new Promise((resolve) => setTimeout(resolve, 10_000, 'hangs').unref()),
    ])
    assert.match(String(outcome), expected)
  }
})

test('a slow client gets the whole content while others are served', async () => {
  const received = await new Promise<number>((resolve, reject) => {
    const request = http.get({
      port: api.port,
      path: `/api/v1/documents/${id}/content`,
      headers: { authorization: `Bearer ${token}` },
      agent: false,
    })
    request.on('error', reject).on('response', async (response) => {
      let size = 0
      for await (const chunk of response) {
        size += chunk.length
        if (size < 300_000) await api.get('/health')
      }
      resolve(size)
    })
  })
  assert.equal(received, SIZE)
})
