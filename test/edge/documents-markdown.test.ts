import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'

/** Tests pages and documents as Markdown. */

const { api, query } = await getSharedEdge()
const [ann, bob] = [await api.register(createEmail('ann')), await api.register(createEmail('bob'))]
let count = 0

/** Creates a document with pages; those without Markdown are null. */
async function add(...pages: readonly (readonly [text: string, markdown: string | null])[]): Promise<string> {
  const { id } = (await api.upload(ann.token, `Markdown ${++count}`)).json
  await query(
    `insert into document_page (document_id, page_number, status, method, text, markdown, job_id)
     select $1, n, 'read', 'text_layer', text, markdown, gen_random_uuid()
     from unnest($2::text[], $3::text[]) with ordinality p(text, markdown, n)`,
    [id, pages.map(([text]) => text), pages.map(([, markdown]) => markdown)],
  )
  return `/api/v1/documents/${id}`
}
const get = (path: string, more = {}) => api.get(path, { token: ann.token, ...more })

const TABLE = '## Fees\n\n| Ship | Fee |\n| --- | --- |\n| Łukasz | 1 |'
const path = await add(['Fees\nShip\tFee', TABLE], ['Plain *text*', null], ['', null])

test('a page is answered as Markdown, or as its text if it has no structure', async () => {
  const page = await get(`${path}/pages/1?format=markdown`)
  assert.deepEqual([page.status, page.text], [200, TABLE])
  assert.equal(page.headers['content-type'], 'text/markdown; charset=utf-8')
  assert.equal((await get(`${path}/pages/2?format=markdown`)).text, 'Plain *text*')
  assert.equal((await get(`${path}/pages/3?format=markdown`)).text, '')
  for (const same of ['', '?format=json'])
    assert.equal((await get(`${path}/pages/1${same}`)).json.text, 'Fees\nShip\tFee')
  const head = await api.call('HEAD', `${path}/pages/1?format=markdown`, { token: ann.token })
  assert.deepEqual([head.status, head.headers['content-type']], [200, 'text/markdown; charset=utf-8'])
})

test('a document is answered as the Markdown of its pages, in order', async () => {
  const document = await get(`${path}?format=markdown`)
  assert.deepEqual(
    [document.status, document.text],
    [200, `<!-- page 1 -->\n\n${TABLE}\n\n<!-- page 2 -->\n\nPlain *text*\n\n<!-- page 3 -->\n\n\n\n`],
  )
  assert.equal(document.headers['content-type'], 'text/markdown; charset=utf-8')
  assert.equal((await get(`${path}?format=json`)).json.kind, 'other')
  const head = await api.call('HEAD', `${path}?format=markdown`, { token: ann.token })
  assert.deepEqual([head.status, head.headers['content-type']], [200, 'text/markdown; charset=utf-8'])
})

test('a document of many pages is complete; one that is not read is empty', async () => {
  const many = await add(...Array.from({ length: 50 }, (_, i) => [`text ${i}`, null] as const))
  const { text } = await get(`${many}?format=markdown`)
  assert.deepEqual(
    [...text.matchAll(/<!-- page (\d+) -->\n\ntext (\d+)/g)].map(([, page, n]) => Number(page) - Number(n)),
    Array(50).fill(1),
  )
  const empty = await get(`${await add()}?format=markdown`)
  assert.deepEqual([empty.status, empty.text], [200, ''])
})

test('other formats, missing pages and documents of others are refused', async () => {
  for (const at of [path, `${path}/pages/1`]) {
    const answer = await get(`${at}?format=html`)
    assert.deepEqual([answer.status, answer.json.code], [422, 'request.invalid'])
    const theirs = await api.get(`${at}?format=markdown`, { token: bob.token })
    assert.equal(theirs.status, 404)
  }
  assert.equal((await get(`${path}/pages/9?format=markdown`)).json.code, 'document.page_missing')
  assert.equal((await get('/api/v1/documents/999999?format=markdown')).json.code, 'document.missing')
})
