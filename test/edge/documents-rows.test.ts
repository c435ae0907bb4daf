import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests the pages and deletion of a document, and callers that must not see it. */

const { api, ...database } = await getSharedEdge()
const { query } = database
const ledger = createLedger(database)
const [ann, bob] = [await api.register(createEmail('ann')), await api.register(createEmail('bob'))]
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const JOB = '01900000-0000-7000-8000-000000000001'
let count = 0
const createDocument = async (): Promise<number> => (await api.upload(ann.token, `text ${++count}`)).json.id
const documentPath = (id: number | string, rest = '') => `/api/v1/documents/${id}${rest}`
const get = (path: string, headers = {}) => api.get(path, { token: ann.token, headers })
const remove = (id: number) => api.call('DELETE', documentPath(id), { token: ann.token })

const id = await createDocument()
await query(
  `insert into document_page (document_id, page_number, status, method, model, detail, text, image, width, height, job_id) values
   ($1, 2, 'read', 'vision', 'tesseract/eng', null, 'seen', $2, 1, 1, $3),
   ($1, 1, 'read', 'text_layer', null, null, 'written', null, null, null, $3),
   ($1, 3, 'unread', 'none', null, 'The page is blank', '', null, null, null, $3)`,
  [id, PNG, JOB],
)
const PAGES = [
  {
    page_number: 1,
    status: 'read',
    method: 'text_layer',
    model: null,
    detail: null,
    has_image: false,
    width: null,
    height: null,
  },
  {
    page_number: 2,
    status: 'read',
    method: 'vision',
    model: 'tesseract/eng',
    detail: null,
    has_image: true,
    width: 1,
    height: 1,
  },
  {
    page_number: 3,
    status: 'unread',
    method: 'none',
    model: null,
    detail: 'The page is blank',
    has_image: false,
    width: null,
    height: null,
  },
]

test('pages are listed in order, without their text', async () => {
  const answer = await get(documentPath(id, '/pages'))
  assert.deepEqual([answer.status, answer.json], [200, PAGES])
})

test('a document that was never extracted has no pages', async () => {
  const answer = await get(documentPath(await createDocument(), '/pages'))
  assert.deepEqual([answer.status, answer.json], [200, []])
})

test('a page comes with its text', async () => {
  for (const [number, text] of [
    [1, 'written'],
    [2, 'seen'],
    [3, ''],
  ] as const) {
    const answer = await get(documentPath(id, `/pages/${number}`))
    assert.deepEqual([answer.status, answer.json], [200, { ...PAGES[number - 1], text }])
  }
})

test('a missing page is 404 and an invalid number 422', async () => {
  for (const path of [documentPath(id, '/pages/4'), documentPath(999_999, '/pages/1')]) {
    const answer = await get(path)
    assert.deepEqual(
      [answer.status, answer.json],
      [404, { detail: 'Page not found', code: 'document.page_missing' }],
    )
  }
  for (const number of ['0', '-1', 'one', '1.5']) {
    const answer = await get(documentPath(id, `/pages/${number}`))
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['path', 'number']])
  }
})

test('a page image is a PNG with an ETag', async () => {
  const answer = await get(documentPath(id, '/pages/2/image'))
  assert.deepEqual(
    [answer.status, answer.headers['content-type'], answer.headers['x-content-type-options']],
    [200, 'image/png', 'nosniff'],
  )
  assert.equal(Buffer.compare(answer.bytes, PNG), 0)
  const tag = answer.headers.etag as string
  assert.match(tag, /^"[\w-]+"$/)
  const again = await get(documentPath(id, '/pages/2/image'), { 'if-none-match': `W/${tag}` })
  assert.deepEqual([again.status, again.bytes.length, again.headers.etag], [304, 0, tag])
  const head = await api.call('HEAD', documentPath(id, '/pages/2/image'), { token: ann.token })
  assert.deepEqual(
    [head.status, head.headers['content-length'], head.bytes.length],
    [200, String(PNG.length), 0],
  )
})

test('the ETag of an image changes when the page is extracted again', async () => {
  const before = (await get(documentPath(id, '/pages/2/image'))).headers.etag as string
  await query(`update document_page set job_id = gen_random_uuid() where document_id = $1`, [id])
  const answer = await get(documentPath(id, '/pages/2/image'), { 'if-none-match': before })
  assert.equal(answer.status, 200)
  assert.notEqual(answer.headers.etag, before)
})

test('a missing image is 404 and tells whether the page exists', async () => {
  assert.deepEqual((await get(documentPath(id, '/pages/1/image'))).json, {
    detail: 'The page has no image',
    code: 'document.image_missing',
  })
  assert.deepEqual((await get(documentPath(id, '/pages/9/image'))).json, {
    detail: 'Page not found',
    code: 'document.page_missing',
  })
  for (const number of [1, 9])
    assert.equal((await get(documentPath(id, `/pages/${number}/image`))).status, 404)
})

test("another owner's document is the same 404 as a missing one on every route", async () => {
  const routes = [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/content'],
    ['HEAD', '/content'],
    ['POST', '/extract'],
    ['POST', '/extract?background=true'],
    ['GET', '/pages'],
    ['GET', '/extraction'],
    ['GET', '/pages/1'],
    ['GET', '/pages/2/image'],
  ] as const
  const extractions = () => query(`select id from job where queue = 'documents' order by id`)
  const before = await extractions()
  for (const [method, rest] of routes) {
    const foreign = await api.call(method, documentPath(id, rest), { token: bob.token })
    const missing = await api.call(method, documentPath(999_999, rest), { token: bob.token })
    assert.equal(foreign.status, 404, `${method} ${rest}`)
    assert.deepEqual([foreign.text, foreign.headers.etag], [missing.text, undefined])
  }
  assert.equal((await get(documentPath(id))).status, 200, 'and nothing has happened to it')
  assert.deepEqual(await extractions(), before)
})

test('an anonymous caller sees no documents', async () => {
  for (const rest of ['', '/content', '/pages', '/pages/1', '/pages/2/image'])
    assert.equal((await api.get(documentPath(id, rest))).status, 401)
})

test('DELETE is 204, then every route is 404', async () => {
  const gone = await createDocument()
  await query(
    `insert into document_page (document_id, page_number, status, method, text, job_id) values ($1, 1, 'read', 'text_layer', 'x', $2)`,
    [gone, JOB],
  )
  const answer = await remove(gone)
  assert.deepEqual([answer.status, answer.bytes.length], [204, 0])
  for (const rest of ['', '/content', '/pages', '/pages/1'])
    assert.equal((await get(documentPath(gone, rest))).status, 404, rest)
  assert.equal((await remove(gone)).status, 404)
  assert.equal((await api.post(documentPath(gone, '/extract'), { token: ann.token })).status, 404)
})

test('DELETE keeps the row, and the same bytes create a new document', async () => {
  const text = 'deleted and uploaded again'
  const first = (await api.upload(ann.token, text)).json
  await remove(first.id)
  const [row] = await query('select deleted_at is not null as deleted from document where id = $1', [
    first.id,
  ])
  assert.equal(row!.deleted, true)
  const again = await api.upload(ann.token, text)
  assert.deepEqual([again.status, again.json.id === first.id], [201, false])
  const content = await get(documentPath(again.json.id, '/content'))
  assert.equal(content.text, text)
})

test('DELETE of a protected document is 409', async () => {
  const kept = await createDocument()
  await query('update document set protected = true where id = $1', [kept])
  const answer = await remove(kept)
  assert.equal(answer.status, 409)
  assert.match(answer.json.detail, /protected/)
  assert.equal((await get(documentPath(kept))).json.protected, true)
  assert.equal(
    (await api.call('DELETE', documentPath(kept), { token: bob.token })).status,
    404,
    'another account does not learn that it is protected',
  )
})

test('one of ten concurrent deletions is 204', async () => {
  const contested = await createDocument()
  const answers = await Promise.all(Array.from({ length: 10 }, () => remove(contested)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [204, ...Array(9).fill(404)])
})

test('an invalid id is 422', async () => {
  for (const wrong of ['0', '-1', 'x', '9007199254740992', '1e3']) {
    const answer = await get(documentPath(wrong))
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['path', 'id']], wrong)
  }
})

test('a document names its running extraction until it ends', async () => {
  const document = await createDocument()
  const extraction = async () => (await get(documentPath(document, '/extraction'))).json
  assert.deepEqual(await extraction(), { job_id: null })
  const started = await api.post(documentPath(document, '/extract?background=true'), { token: ann.token })
  assert.deepEqual(await extraction(), { job_id: started.json.job_id })
  await api.call('DELETE', `/api/v1/jobs/${started.json.job_id}`, { token: ann.token })
  assert.deepEqual(await extraction(), { job_id: null })
})

test('a forced extraction does not join an unforced one, but runs after it', async () => {
  const document = await createDocument()
  const start = async (force: boolean) =>
    (await api.post(documentPath(document, `/extract?background=true&force=${force}`), { token: ann.token }))
      .json.job_id
  const [plain, forced, again, other] = [
    await start(false),
    await start(true),
    await start(true),
    await start(false),
  ]
  assert.deepEqual([again, other], [forced, plain])
  assert.notEqual(forced, plain)
  const rows = await query(
    `select id, status, payload ->> 'force' as force from job where mailbox = $1 order by ordinal`,
    [`document:${document}`],
  )
  assert.deepEqual(rows, [
    { id: plain, status: 'available', force: 'false' },
    { id: forced, status: 'available', force: 'true' },
  ])
})

test('an extraction joins only one in the same language; a language without OCR data is rejected', async () => {
  const document = await createDocument()
  const start = (rest: string) =>
    api.post(documentPath(document, `/extract?background=true${rest}`), { token: ann.token })
  const idOf = async (rest: string) => (await start(rest)).json.job_id
  const [plain, german, again] = [
    await idOf(''),
    await idOf('&language=deu%2Beng'),
    await idOf('&language=deu%2Beng'),
  ]
  assert.equal(german, again)
  assert.notEqual(german, plain)
  const [row] = await query(`select payload ->> 'language' as language from job where id = $1`, [german])
  assert.equal(row!.language, 'deu+eng')
  const missing = await start('&language=xxx%2Beng')
  assert.deepEqual(
    [missing.status, missing.json],
    [
      422,
      {
        detail: 'OCR data is missing for these languages; install @tesseract.js-data/xxx',
        code: 'document.language_missing',
      },
    ],
  )
  for (const wrong of ['english', 'eng%2B', 'eng,deu', 'ENG', `eng${'%2Beng'.repeat(5)}`])
    assert.equal((await start(`&language=${wrong}`)).status, 422, wrong)
})

for (const rest of ['', '?permanent=true'])
  test(`DELETE${rest} cancels the extractions of the document unless it is rejected`, async () => {
    const remove = (token = ann.token) => api.call('DELETE', documentPath(document, rest), { token })
    const document = await createDocument()
    const ids: string[] = []
    for (const force of [false, true])
      ids.push(
        (
          await api.post(documentPath(document, `/extract?background=true&force=${force}`), {
            token: ann.token,
          })
        ).json.job_id,
      )
    await ledger.claim(ids[0]!)
    const jobs = async () =>
      query(
        'select status, cancel_requested_at is not null as asked from job where id = any($1) order by ordinal',
        [ids],
      )
    const untouched = await jobs()
    await api.call('PATCH', documentPath(document), { token: ann.token, json: { protected: true } })
    assert.equal((await remove()).status, 409)
    assert.equal((await remove(bob.token)).status, 404)
    assert.deepEqual(await jobs(), untouched)
    await api.call('PATCH', documentPath(document), { token: ann.token, json: { protected: false } })
    assert.equal((await remove()).status, 204)
    assert.deepEqual(await jobs(), [
      { status: 'running', asked: true },
      { status: 'cancelled', asked: true },
    ])
  })
