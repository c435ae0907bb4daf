import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import net from 'node:net'
import { test } from 'node:test'
import { UNTYPED_PREFIX } from '../blobs.ts'
import { until } from '../until.ts'
import {
  type Answered,
  createEmail,
  createMultipart,
  getSharedEdge,
  startEdge,
  type UploadOptions,
} from './harness.ts'

const MAX_BYTES = 600_000
const { url, query } = await getSharedEdge()
const api = await startEdge(url, { env: { MAX_UPLOAD_BYTES: String(MAX_BYTES) } })
const [ann, bob] = [await api.register(createEmail('ann')), await api.register(createEmail('bob'))]
const upload = (bytes: string | Uint8Array, options?: UploadOptions, token = ann.token) =>
  api.upload(token, bytes, options)
const countBlobs = async () =>
  (await query('select sha256 is null as unfinished, count(*)::int as n from blob group by 1')) as {
    unfinished: boolean
    n: number
  }[]
let count = 0
const newContent = (): string => `document number ${++count}`

/** Asserts that a rejected upload leaves nothing behind. */
async function assertNothingLeft(work: () => Promise<unknown>): Promise<void> {
  const before = await countBlobs()
  const documents = await query('select count(*) from document')
  await work()
  assert.deepEqual(await countBlobs(), before)
  assert.deepEqual(await query('select count(*) from document'), documents)
  assert.deepEqual(
    await query('select 1 from blob_chunk c where not exists (select from blob b where b.id = c.blob_id)'),
    [],
  )
}

function assertField(answer: Answered, field: string): void {
  assert.equal(answer.status, 422, answer.text)
  assert.deepEqual(
    answer.json.errors.map(({ loc }: { loc: unknown }) => loc),
    [['body', field]],
  )
}

test('an upload creates a document with all its fields', async () => {
  const text = newContent()
  const answer = await upload(text, { name: 'notes.txt' })
  assert.equal(answer.status, 201)
  const { id, received_at, created_at, ...document } = answer.json
  assert.deepEqual(document, {
    title: 'notes.txt',
    kind: 'other',
    media_type: 'text/plain',
    byte_size: text.length,
    sha256: createHash('sha256').update(text).digest('hex'),
    page_count: null,
    document_date: null,
    source: 'upload',
    channel: null,
    note: null,
    protected: false,
    supersedes_id: null,
    superseded_by_id: null,
    attached_to_id: null,
    tags: [],
    updated_at: null,
  })
  for (const at of [received_at, created_at]) assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(answer.headers.location, `/api/v1/documents/${id}`)
  const again = await api.get(`/api/v1/documents/${id}`, { token: ann.token })
  assert.deepEqual([again.status, again.json], [200, answer.json])
})

test('form fields are stored in any order, and an empty field counts as missing', async () => {
  const fields = {
    title: ' A title ',
    kind: 'invoice',
    document_date: '2024-02-29',
    source: 'mail',
    channel: 'inbox',
    note: ' a\nnote ',
  }
  const { json } = await upload(newContent(), { fields })
  const { title, kind, document_date, source, channel, note } = json
  assert.deepEqual({ title, kind, document_date, source, channel, note }, { ...fields, title: 'A title' })
  const empty = await upload(newContent(), {
    name: 'e.txt',
    fields: { title: '', kind: '', document_date: '', source: '', channel: '', note: '' },
  })
  assert.deepEqual(
    [empty.json.title, empty.json.kind, empty.json.source, empty.json.note],
    ['e.txt', 'other', 'upload', null],
  )
})

test('fields after the file count, too', async () => {
  const text = 'the file comes first'
  const parts = [
    `--b\r\ncontent-disposition: form-data; name="file"; filename="f.txt"\r\n\r\n${text}\r\n`,
    '--b\r\ncontent-disposition: form-data; name="title"\r\n\r\nLate\r\n--b--\r\n',
  ]
  const answer = await api.post('/api/v1/documents', {
    token: ann.token,
    body: parts.join(''),
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
  })
  assert.deepEqual([answer.status, answer.json.title, answer.json.byte_size], [201, 'Late', text.length])
})

test('a field beyond its limit is rejected by name, and nothing is stored', async () => {
  const wrong: Readonly<Record<string, readonly string[]>> = {
    title: ['x'.repeat(301), '   ', 'nul\0'],
    kind: ['x'.repeat(33), ' '],
    document_date: [
      '2024-02-30',
      '2023-02-29',
      '29.02.2024',
      '2024-1-1',
      '2024-01-01T00:00:00Z',
      '0000-01-01',
      'today',
    ],
    source: ['x'.repeat(101)],
    channel: ['x'.repeat(101), 'nul\0'],
    note: ['x'.repeat(10_001)],
  }
  await assertNothingLeft(async () => {
    for (const [field, values] of Object.entries(wrong)) {
      for (const value of values)
        assertField(await upload(newContent(), { fields: { [field]: value } }), field)
    }
  })
})

test('an unknown field is rejected by name, and nothing is stored', async () => {
  await assertNothingLeft(async () => {
    const answer = await upload(newContent(), { fields: { titel: 'x' } })
    assert.deepEqual(answer.json.errors, [
      {
        loc: ['body'],
        msg: 'has no titel; its fields are file, title, kind, document_date, channel, note, source, tags',
        type: 'unrecognized_keys',
      },
    ])
    assert.deepEqual([answer.status, answer.json.detail], [422, `body: ${answer.json.errors[0].msg}`])
  })
})

test('fields of maximum length are stored', async () => {
  const fields = {
    title: '题'.repeat(300),
    kind: 'k'.repeat(32),
    document_date: '9999-12-31',
    source: 's'.repeat(100),
    channel: 'c'.repeat(100),
    note: 'n'.repeat(10_000),
  }
  const { status, json } = await upload(newContent(), { fields })
  assert.equal(status, 201)
  for (const [field, value] of Object.entries(fields)) assert.equal(json[field], value)
})

test('identical bytes of one owner give the existing document with 200', async () => {
  const text = newContent()
  const first = await upload(text, { fields: { title: 'first' } })
  const again = await upload(text, { name: 'other.txt', fields: { title: 'second' } })
  assert.deepEqual([first.status, again.status], [201, 200])
  assert.deepEqual(again.json, first.json)
  assert.equal(again.headers.location, first.headers.location)
})

test('another owner gets a separate document with the same stored bytes', async () => {
  const text = newContent()
  const [one, two] = [await upload(text), await upload(text, {}, bob.token)]
  assert.deepEqual([one.status, two.status], [201, 201])
  assert.notEqual(one.json.id, two.json.id)
  const [row] = await query(`select count(*)::int as n from blob where sha256 = decode($1, 'hex')`, [
    one.json.sha256,
  ])
  assert.equal(row!.n, 1)
})

test('twenty concurrent uploads of the same bytes create one document and one blob', async () => {
  const bytes = randomBytes(300_000)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => upload(bytes, { fields: { title: `t${i}` } })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(19).fill(200), 201])
  assert.equal(new Set(answers.map(({ json }) => json.id)).size, 1)
  const [row] = await query(
    `select (select count(*)::int from document where sha256 = $1) as documents, (select count(*)::int from blob where sha256 = $1) as blobs,
       (select count(*)::int from blob where sha256 is null) as unfinished`,
    [createHash('sha256').update(bytes).digest()],
  )
  assert.deepEqual(row, { documents: 1, blobs: 1, unfinished: 0 })
})

test('the media type comes from the bytes, not from the client', async () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  assert.equal((await upload(png, { name: 'x.pdf', type: 'application/pdf' })).json.media_type, 'image/png')
  assert.equal(
    (await upload('%PDF-1.4\n1 0 obj', { name: 'x.png', type: 'image/png' })).json.media_type,
    'application/pdf',
  )
  assert.equal(
    (await upload(UNTYPED_PREFIX, { name: 'x.txt.exe', type: 'text/html' })).json.media_type,
    'application/octet-stream',
  )
  assert.equal(
    (await upload('<script>alert(1)</script>', { name: 'x.html', type: 'text/html' })).json.media_type,
    'text/html',
  )
})

test('an empty file is 400', async () => {
  await assertNothingLeft(async () => {
    const answer = await upload('')
    assert.deepEqual(
      [answer.status, answer.json],
      [400, { detail: 'The file is empty', code: 'document.empty' }],
    )
  })
})

test('a form without a file is 422 at `file`', async () => {
  const post = (body: string) =>
    api.post('/api/v1/documents', {
      token: ann.token,
      body,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })
  for (const body of [
    '--b\r\ncontent-disposition: form-data; name="title"\r\n\r\nx\r\n--b--\r\n',
    '--b\r\ncontent-disposition: form-data; name="file"\r\n\r\ntext, no file\r\n--b--\r\n',
  ]) {
    assertField(await post(body), 'file')
  }
})

test('a body that is not a form is 415, and a malformed form 400', async () => {
  assert.equal((await api.post('/api/v1/documents', { token: ann.token, json: { file: 'x' } })).status, 415)
  assert.equal((await api.post('/api/v1/documents', { token: ann.token })).status, 415)
  const { body, type } = createMultipart(newContent())
  await assertNothingLeft(async () => {
    const cut = await api.post('/api/v1/documents', {
      token: ann.token,
      body: body.subarray(0, body.length - 10),
      headers: { 'content-type': type },
    })
    assert.equal(cut.status, 400, cut.text)
    const nameless = await api.post('/api/v1/documents', {
      token: ann.token,
      body,
      headers: { 'content-type': 'multipart/form-data' },
    })
    assert.equal(nameless.status, 400)
  })
})

test('a file of exactly MAX_UPLOAD_BYTES is stored; a larger one is 413 and leaves nothing behind', async () => {
  assert.equal((await upload(randomBytes(MAX_BYTES))).status, 201)
  await assertNothingLeft(async () => {
    const answer = await upload(randomBytes(MAX_BYTES + 1))
    assert.deepEqual(
      [answer.status, answer.json],
      [413, { detail: `The body is larger than the limit of ${MAX_BYTES} bytes`, code: 'request.too_large' }],
    )
    assert.equal((await upload(randomBytes(MAX_BYTES + 3_000_000))).status, 413)
  })
})

test('a client that disconnects during the upload leaves nothing behind', async () => {
  await assertNothingLeft(async () => {
    const { body, type } = createMultipart(randomBytes(500_000))
    const socket = net.connect(api.port, '127.0.0.1')
    const head = `POST /api/v1/documents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ann.token}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`
    socket.write(head)
    socket.write(body.subarray(0, 400_000))
    await until(
      'some bytes are stored',
      async () =>
        (await query('select 1 from blob b join blob_chunk c on c.blob_id = b.id where b.sha256 is null'))
          .length > 0,
    )
    socket.destroy()
    await until(
      'the bytes are gone',
      async () => (await query('select 1 from blob where sha256 is null')).length === 0,
    )
  })
})

test('paths and control characters are removed from the file name for the title', async () => {
  for (const [name, title] of [
    ['../../etc/passwd', 'passwd'],
    ['C:\\\\Users\\\\me\\\\plan.txt', 'plan.txt'],
    ['a\tb.txt', 'ab.txt'],
    ['', 'Untitled'],
    ['..', 'Untitled'],
  ] as const) {
    assert.equal((await upload(newContent(), { name })).json.title, title, name)
  }
})

test('an upload requires an account', async () => {
  await assertNothingLeft(async () => {
    assert.equal((await upload(newContent(), {}, 'nonsense')).status, 401)
  })
})
