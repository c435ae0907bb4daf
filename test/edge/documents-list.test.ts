import assert from 'node:assert/strict'
import { test } from 'node:test'
import { edgeAndDatabase, type UploadOptions } from './harness.ts'

interface Document {
  readonly id: number
  readonly title: string
}

const { api, query } = await edgeAndDatabase()
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
const upload = async (token: string, title: string, fields: UploadOptions['fields'] = {}): Promise<number> =>
  (await api.upload(token, `content of ${title}`, { fields: { title, ...fields } })).json.id
const list = async (search = '', token = ann.token) => {
  const answer = await api.get(`/api/v1/documents${search}`, { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Document[]; total: number; page: number; page_size: number }
}
const titles = async (search = '', token = ann.token): Promise<string[]> =>
  (await list(search, token)).items.map(({ title }) => title)

const ids = new Map<string, number>()
for (const [title, kind, note] of [
  ['Annual report', 'report', 'the harbour office'],
  ['Invoice 7', 'invoice', 'paid in full'],
  ['Invoice 8', 'invoice', ''],
  ['Contract', 'contract', 'signed by the harbour office'],
] as const)
  ids.set(title, await upload(ann.token, title, { kind, note }))
await upload(bob.token, 'Not for Ann', { kind: 'invoice' })
await query(`update document set tags = array['2024', 'paid'] where title = 'Invoice 7'`)
await query(`update document set tags = array['2024'] where title = 'Contract'`)
await query(
  `insert into document_page (document_id, page_number, status, method, text, job_id)
   values ($1, 1, 'read', 'text_layer', 'The winter supplies have arrived', gen_random_uuid())`,
  [ids.get('Annual report')],
)

test('documents of the caller, newest first, with totals', async () => {
  const { items, ...rest } = await list()
  assert.deepEqual(rest, { total: 4, total_is_exact: true, page: 1, page_size: 50, next: null })
  assert.deepEqual(
    items.map(({ title }) => title),
    ['Contract', 'Invoice 8', 'Invoice 7', 'Annual report'],
  )
  assert.deepEqual(
    items[0],
    (await api.get(`/api/v1/documents/${ids.get('Contract')}`, { token: ann.token })).json,
  )
})

test('another owner sees their own, and an admin no more than that', async () => {
  assert.deepEqual(await titles('', bob.token), ['Not for Ann'])
  assert.equal(ann.role, 'admin')
})

test('who has nothing gets an empty page', async () => {
  const { token } = await api.register('nobody@example.com')
  assert.deepEqual(await list('', token), {
    items: [],
    total: 0,
    total_is_exact: true,
    page: 1,
    page_size: 50,
    next: null,
  })
})

test('pages follow each other without a gap; the total stays', async () => {
  const first = await list('?page_size=3')
  const second = await list('?page=2&page_size=3')
  assert.deepEqual(
    [first.items.length, second.items.length, first.total, second.total, second.page],
    [3, 1, 4, 4, 2],
  )
  assert.deepEqual([...first.items, ...second.items], (await list()).items)
  assert.deepEqual(await list('?page=3&page_size=3'), {
    items: [],
    total: 4,
    total_is_exact: true,
    page: 3,
    page_size: 3,
    next: null,
  })
})

test('page and page_size have bounds', async () => {
  for (const search of [
    'page=0',
    'page=-1',
    'page=10002',
    'page_size=0',
    'page_size=201',
    'page_size=x',
    'page=',
  ]) {
    const answer = await api.get(`/api/v1/documents?${search}`, { token: ann.token })
    assert.deepEqual(
      [answer.status, answer.json.errors[0].loc],
      [422, ['query', search.split('=')[0]]],
      search,
    )
  }
  assert.equal((await list('?page=51&page_size=200')).items.length, 0)
})

test('a cursor leads on, in the order in which the list is: newest first, or best first', async () => {
  for (const search of ['', '&search=invoice', '&search=the']) {
    const all = await titles(`?page_size=200${search}`)
    const followed: string[] = []
    let next: string | null = ''
    while (next !== null) {
      const answer = await api.get(`/api/v1/documents?page_size=1${search}${next && `&cursor=${next}`}`, {
        token: ann.token,
      })
      followed.push(...answer.json.items.map(({ title }: Document) => title))
      next = answer.json.next
    }
    assert.deepEqual(followed, all)
    assert.ok(all.length > 1)
  }
  const { next } = (await api.get('/api/v1/documents?page_size=1', { token: ann.token })).json
  const refused = await api.get(`/api/v1/documents?search=invoice&cursor=${next}`, { token: ann.token })
  assert.deepEqual([refused.status, refused.json.errors[0].loc], [422, ['query', 'cursor']])
})

test('filters by kind and by tag, together too', async () => {
  assert.deepEqual(await titles('?kind=invoice'), ['Invoice 8', 'Invoice 7'])
  assert.deepEqual(await titles('?tag=2024'), ['Contract', 'Invoice 7'])
  assert.deepEqual(await titles('?tag=2024&kind=invoice'), ['Invoice 7'])
  assert.deepEqual(await titles('?kind=Invoice'), [], 'a kind is not a search')
  assert.equal((await list('?kind=invoice&page_size=1')).total, 2, 'the total counts what the filter leaves')
})

test('searches titles, notes, tags and the text of pages', async () => {
  assert.deepEqual(await titles('?search=invoice'), ['Invoice 8', 'Invoice 7'])
  assert.deepEqual((await titles('?search=harbour')).sort(), ['Annual report', 'Contract'])
  assert.deepEqual(await titles('?search=paid%20-full'), [])
  assert.deepEqual(await titles('?search=paid'), ['Invoice 7'])
  assert.deepEqual(await titles('?search=WINTER%20supplies'), ['Annual report'])
  assert.deepEqual(await titles('?search=%22signed%20by%22'), ['Contract'])
  assert.deepEqual(await titles('?search=invoice&tag=paid'), ['Invoice 7'])
})

test('a search of nothing is none, and no words or operators break it', async () => {
  assert.equal((await list('?search=')).total, 4)
  for (const words of ['!!!', '"', "'; drop table document --", '\\', '&|!()', ':*', 'or or', '-']) {
    assert.equal(
      (await api.get(`/api/v1/documents?search=${encodeURIComponent(words)}`, { token: ann.token })).status,
      200,
      words,
    )
  }
})

test('superseded documents are hidden unless asked for', async () => {
  await query('update document set supersedes_id = $1 where id = $2', [
    ids.get('Invoice 7'),
    ids.get('Invoice 8'),
  ])
  assert.deepEqual(await titles('?kind=invoice'), ['Invoice 8'])
  const { items, total } = await list('?kind=invoice&include_superseded=true')
  assert.equal(total, 2)
  const [newer, older] = items as (Document & {
    supersedes_id: number | null
    superseded_by_id: number | null
  })[]
  assert.deepEqual([newer!.supersedes_id, older!.superseded_by_id], [older!.id, newer!.id])
  assert.equal(
    (await api.get('/api/v1/documents?include_superseded=maybe', { token: ann.token })).status,
    422,
  )
})

test('a deleted document is in no list, and what it superseded is back', async () => {
  assert.equal(
    (await api.call('DELETE', `/api/v1/documents/${ids.get('Invoice 8')}`, { token: ann.token })).status,
    204,
  )
  const { items, total } = await list('?kind=invoice')
  assert.deepEqual([items.map(({ title }) => title), total], [['Invoice 7'], 1])
})
