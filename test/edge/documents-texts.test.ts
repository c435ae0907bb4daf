import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode } from 'iconv-lite'
import { createEmail, createMultipart, getSharedEdge } from './harness.ts'

/** Texts: their encodings, and what a name, a type and tags at the upload do. */

const { api, query } = await getSharedEdge()
const { token } = await api.register(createEmail('texts'))
const upload = (bytes: string | Uint8Array, name: string, fields: Record<string, string> = {}) =>
  api.upload(token, bytes, { name, fields })
let count = 0
const newText = (): string => `a text of its own, number ${++count}\n`

test('a text is served with the charset of its bytes, or without one', async () => {
  const contentType = async (id: number) =>
    (await api.call('GET', `/api/v1/documents/${id}/content`, { token })).headers['content-type']
  const { id } = (await upload(encode(`Müller ${newText()}`, 'latin1'), 'latin1.ini')).json
  assert.equal(await contentType(id), 'text/plain')
  await query(`update document set encoding = 'windows-1252' where id = $1`, [id])
  assert.equal(await contentType(id), 'text/plain; charset=windows-1252')
  const wide = (await upload(Buffer.from(newText(), 'utf16le'), 'wide.csv')).json
  assert.equal(await contentType(wide.id), 'text/plain; charset=utf-16le')
  // The first bytes are ASCII, and do not tell the encoding of the others.
  const long = Buffer.concat([Buffer.from(newText().repeat(4000)), encode('Müller', 'latin1')])
  assert.equal(await contentType((await upload(long, 'long.txt')).json.id), 'text/plain')
  const japanese = Buffer.from(`\x1b$B$3$l\x1b(B ${newText()}`)
  assert.equal(await contentType((await upload(japanese, 'a.txt')).json.id), 'text/plain')
  const umlaut = `Müller ${newText()}`
  assert.equal(
    await contentType((await upload(umlaut.repeat(4000), 'long.csv')).json.id),
    'text/plain; charset=utf-8',
  )
})

test('an extraction accepts any label of an encoding, and joins only one in the same encoding', async () => {
  const { id } = (await upload(newText(), 'a.txt')).json
  const start = (encoding: string) =>
    api.post(`/api/v1/documents/${id}/extract?background=true&encoding=${encoding}`, { token })
  const jobs = [await start('Shift_JIS'), await start('sjis'), await start('cp850')].map(
    ({ json }) => json.job_id,
  )
  assert.equal(jobs[0], jobs[1])
  assert.notEqual(jobs[0], jobs[2])
  const rows = await query(
    `select payload ->> 'encoding' as encoding from job where id = any($1::uuid[]) order by ordinal`,
    [jobs],
  )
  assert.deepEqual(
    rows.map(({ encoding }) => encoding),
    ['shift_jis', 'cp850'],
  )
  for (const wrong of ['klingon', '', 'x'.repeat(41), 'utf-8%00']) {
    const answer = await start(wrong)
    assert.deepEqual([answer.status, answer.json.errors?.[0].loc], [422, ['query', 'encoding']], wrong)
  }
})

test('the same bytes under a better name get a better type, and keep it', async () => {
  const text = newText()
  const first = (await upload(text, 'notes.txt')).json
  assert.equal(first.media_type, 'text/plain')
  const better = await upload(text, 'notes.md')
  assert.deepEqual([better.status, better.json.id, better.json.media_type], [200, first.id, 'text/markdown'])
  assert.equal((await upload(text, 'notes.txt')).json.media_type, 'text/markdown')
  assert.equal(better.json.title, 'notes.txt')
})

test('an upload may have tags: a field for each, or a JSON array', async () => {
  const send = (...tags: readonly string[]) => {
    const { body, type } = createMultipart(newText())
    const boundary = type.split('boundary=')[1]!
    const parts = tags.map(
      (tag) => `--${boundary}\r\ncontent-disposition: form-data; name="tags"\r\n\r\n${tag}\r\n`,
    )
    return api.call('POST', '/api/v1/documents', {
      token,
      body: Buffer.concat([Buffer.from(parts.join('')), body]),
      headers: { 'content-type': type },
    })
  }
  for (const [tags, stored] of [
    [[], []],
    [[''], []],
    [['invoice'], ['invoice']],
    [
      [' a, b ', 'c', 'c'],
      ['a, b', 'c'],
    ],
    [['["x","y"]'], ['x', 'y']],
    [['[]'], []],
  ] as const) {
    const answer = await send(...tags)
    assert.deepEqual([answer.status, answer.json.tags], [201, stored], JSON.stringify(tags))
  }
  const { json } = await api.get('/api/v1/documents?tag=x', { token })
  assert.equal(json.total, 1)
  for (const tags of [
    ['x'.repeat(65)],
    [' '],
    ['[1]'],
    ['[x'],
    [JSON.stringify(Array.from({ length: 101 }, String))],
  ]) {
    const answer = await send(...tags)
    assert.equal(answer.status, 422, tags[0]!.slice(0, 20))
    assert.deepEqual(answer.json.errors[0].loc.slice(0, 2), ['body', 'tags'])
  }
})

test('names lose escapes of browsers and characters that turn their direction', async () => {
  const quoted = await upload(newText(), 'the %22best%22 text.txt')
  assert.equal(quoted.json.title, 'the "best" text.txt')
  assert.equal((await upload(newText(), 'in\u202efdp.txt')).json.title, 'infdp.txt')
  const { id, title } = (await upload(newText(), 'a.txt', { title: '\u202eevil\u202c' })).json
  assert.equal(title, 'evil')
  const changed = await api.call('PATCH', `/api/v1/documents/${id}`, {
    token,
    json: { title: '\u2066good\u2069' },
  })
  assert.equal(changed.json.title, 'good')
  const turned = await api.call('PATCH', `/api/v1/documents/${id}`, { token, json: { title: '\u202e' } })
  assert.equal(turned.status, 422)
})
