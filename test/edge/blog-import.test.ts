import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { test } from 'node:test'
import { until } from '../until.ts'
import { BLOG_PATH, createSharedBlog, importFile } from './blog-help.ts'
import { createMultipart } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** Tests import requests. Other tests cover the job that reads the file. */

const MAX_BYTES = 400_000
const { api, editor, query } = await createSharedBlog({ env: { MAX_IMPORT_BYTES: String(MAX_BYTES) } })
const send = (name: string, bytes: string | Uint8Array, options: Parameters<typeof importFile>[4] = {}) =>
  importFile(api, editor, name, bytes, { query: '?background=true', ...options })
const countImportJobs = async () =>
  Number((await query(`select count(*) from job where name = 'blog.import'`))[0]!.count)

/** Asserts that a rejected import leaves nothing behind. */
async function assertNothingStored(work: () => Promise<void>): Promise<void> {
  const before = [
    await countImportJobs(),
    await query('select id from blog_upload'),
    await query('select count(*) from blog_upload_chunk'),
  ]
  await work()
  assert.deepEqual(
    [
      await countImportJobs(),
      await query('select id from blog_upload'),
      await query('select count(*) from blog_upload_chunk'),
    ],
    before,
  )
}

test('stores the file unchanged for its job, regardless of the case of its extension', async () => {
  for (const [name, format] of [
    ['a.md', 'markdown'],
    ['A.MD', 'markdown'],
    ['a.markdown', 'markdown'],
    ['a.mdx', 'markdown'],
    ['a.xml', 'xml'],
    ['a.b.zip', 'zip'],
    ['a.Json', 'json'],
  ] as const) {
    const bytes = format === 'zip' ? randomBytes(MAX_BYTES) : Buffer.from(`${name} 題 `.repeat(20_000))
    const answer = await send(name, bytes)
    assert.equal(answer.status, 202, answer.text)
    const [row] = await query(
      `select u.file_name, u.format, j.payload, j.owner_id, j.mailbox, string_agg(c.bytes, '' order by c.ordinal) as bytes
       from job j join blog_upload u on u.job_id = j.id join blog_upload_chunk c on c.upload_id = u.id where j.id = $1 group by u.id, j.id`,
      [answer.json.job_id],
    )
    assert.deepEqual(
      [row!.file_name, row!.format, row!.owner_id, row!.mailbox],
      [name, format, editor.id, 'blog'],
    )
    assert.ok((row!.bytes as Buffer).equals(bytes))
    assert.equal((row!.payload as { onConflict: string }).onConflict, 'skip')
    assert.equal(answer.headers.location, `/api/v1/jobs/${answer.json.job_id}`)
  }
})

test('accepts an empty file', async () => assert.equal((await send('a.md', '')).status, 202))

test('passes on_conflict on and rejects other values with 422 before it reads the file', async () => {
  for (const on_conflict of ['skip', 'overwrite', 'fail']) {
    const { json } = await send('a.md', 'x', { query: `?background=true&on_conflict=${on_conflict}` })
    const [row] = await query('select payload from job where id = $1', [json.job_id])
    assert.equal((row!.payload as { onConflict: string }).onConflict, on_conflict)
  }
  await assertNothingStored(async () => {
    for (const given of ['on_conflict=merge', 'on_conflict=', 'background=maybe'])
      assertRefused(await send('a.md', 'x', { query: `?${given}` }), 422)
  })
})

test('rejects another or a missing extension with 400', async () => {
  await assertNothingStored(async () => {
    for (const name of ['a.txt', 'a', 'md', 'a.md.exe', 'a.tar.gz', '', '.', 'a.mdxx', 'a.md '])
      if (name !== 'a.md ')
        assertRefused(
          await send(name, 'x'),
          400,
          'The file name must end with .md, .markdown, .mdx, .zip, .json or .xml',
        )
  })
})

test('rejects text that is not UTF-8 with 400, wherever the invalid bytes are', async () => {
  await assertNothingStored(async () => {
    for (const name of ['a.md', 'a.json'])
      for (const bytes of [
        Buffer.from([0xff]),
        Buffer.concat([Buffer.alloc(300_000, 'x'), Buffer.from([0xc3])]),
        Buffer.from('caf\xe9', 'latin1'),
      ])
        assertRefused(await send(name, bytes), 400, 'The file is not valid UTF-8')
  })
  assert.equal(
    (await send('a.md', `${'x'.repeat(65_535)}題${'é'.repeat(100_000)}`)).status,
    202,
    'characters across chunks are whole',
  )
})

test('rejects a form without a file or with an unknown field with 422', async () => {
  await assertNothingStored(async () => {
    const tried = {
      '--b--\r\n': ['body', 'file'],
      '--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n': ['body', 'file'],
      '--b\r\ncontent-disposition: form-data; name="title"\r\n\r\nx\r\n--b--\r\n': ['body'],
      '--b\r\ncontent-disposition: form-data; name="other"; filename="a.md"\r\n\r\nx\r\n--b--\r\n': ['body'],
    }
    for (const [body, loc] of Object.entries(tried)) {
      const headers = { 'content-type': 'multipart/form-data; boundary=b' }
      const answer = await api.post(`${BLOG_PATH}/import`, { token: editor.token, body, headers })
      assertRefused(answer, 422)
      assert.deepEqual(answer.json.errors[0].loc, loc)
    }
    const options = { name: 'a.md', fields: { on_conflict: 'overwrite' } }
    const { body, type } = createMultipart('x', options)
    const answer = await api.post(`${BLOG_PATH}/import`, {
      token: editor.token,
      body,
      headers: { 'content-type': type },
    })
    assertRefused(answer, 422, 'body: has no on_conflict; its fields are file')
  })
})

test('rejects a body that is not a form with 415 and a malformed form with 400', async () => {
  await assertNothingStored(async () => {
    assert.equal((await api.post(`${BLOG_PATH}/import`, { token: editor.token, json: [] })).status, 415)
    const { body, type } = createMultipart('x', { name: 'a.md' })
    const cut = await api.post(`${BLOG_PATH}/import`, {
      token: editor.token,
      body: body.subarray(0, -10),
      headers: { 'content-type': type },
    })
    assertRefused(cut, 400)
  })
})

test('accepts a file of exactly MAX_IMPORT_BYTES and rejects a larger one with 413', async () => {
  assert.equal((await send('a.zip', randomBytes(MAX_BYTES))).status, 202)
  await assertNothingStored(async () => {
    assertRefused(
      await send('a.zip', randomBytes(MAX_BYTES + 1)),
      413,
      `The body is larger than the limit of ${MAX_BYTES} bytes`,
    )
    assertRefused(await send('a.md', 'x'.repeat(MAX_BYTES + 2_000_000)), 413)
  })
})

test('a client that disconnects during the upload leaves nothing behind', async () => {
  await assertNothingStored(async () => {
    const { body, type } = createMultipart(randomBytes(390_000), { name: 'a.zip' })
    const socket = net.connect(api.port, '127.0.0.1')
    socket.write(
      `POST ${BLOG_PATH}/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${editor.token}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    socket.write(body.subarray(0, 380_000))
    const under = async () => (await query('select 1 from blog_upload where job_id is null')).length > 0
    await until('the upload is running', under)
    socket.destroy()
    await until('the upload is gone', async () => !(await under()))
  })
})

test('the same file and Idempotency-Key give one job; another file is 422', async () => {
  const headers = { 'idempotency-key': 'k1' }
  const first = await send('a.md', 'one', { headers })
  await assertNothingStored(async () => {
    const again = await send('a.md', 'one', { headers })
    assert.deepEqual([again.status, again.json], [202, first.json])
    assertRefused(await send('a.md', 'two', { headers }), 422)
    assertRefused(await send('b.md', 'one', { headers }), 422)
  })
})
