import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail, getSharedEdge, type UploadOptions } from './harness.ts'

interface Document {
  readonly id: number
  readonly title: string
}

const { api, query, admin } = await getSharedEdge()
const [ann, bob] = [await api.register(createEmail('ann')), await api.register(createEmail('bob'))]
const upload = async (token: string, title: string, fields: UploadOptions['fields'] = {}): Promise<number> =>
  (await api.upload(token, `content of ${title}`, { fields: { title, ...fields } })).json.id
const list = async (search = '', token = ann.token) => {
  const answer = await api.get(`/api/v1/documents${search}`, { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Document[]; total: number; page: number; page_size: number }
}
const listTitles = async (search = '', token = ann.token): Promise<string[]> =>
  (await list(search, token)).items.map(({ title }) => title)

/** Returns the titles of a list, following cursors with one document per page. */
async function followTitles(search: string, token = ann.token): Promise<string[]> {
  const found: string[] = []
  for (let next: string | null = ''; next !== null; ) {
    const { json } = await api.get(`/api/v1/documents?page_size=1&${search}${next && `&cursor=${next}`}`, {
      token,
    })
    found.push(...json.items.map(({ title }: Document) => title))
    next = json.next
  }
  return found
}

const idsByTitle = new Map<string, number>()
for (const [title, kind, note] of [
  ['Annual report', 'report', 'the harbour office'],
  ['Invoice 7', 'invoice', 'paid in full'],
  ['Invoice 8', 'invoice', ''],
  ['Contract', 'contract', 'signed by the harbour office'],
] as const)
  idsByTitle.set(title, await upload(ann.token, title, { kind, note }))
await upload(bob.token, 'Not for Ann', { kind: 'invoice' })
for (const [title, tags] of [
  ['Invoice 7', ['2024', 'paid']],
  ['Contract', ['2024']],
] as const)
  await query('update document set tags = $2 where id = $1', [idsByTitle.get(title), tags])
await query(
  `insert into document_page (document_id, page_number, status, method, text, job_id)
   values ($1, 1, 'read', 'text_layer', 'The winter supplies have arrived', gen_random_uuid())`,
  [idsByTitle.get('Annual report')],
)

test('lists own documents, newest first, with totals', async () => {
  const { items, ...rest } = await list()
  assert.deepEqual(rest, { total: 4, total_is_exact: true, page: 1, page_size: 50, next: null })
  assert.deepEqual(
    items.map(({ title }) => title),
    ['Contract', 'Invoice 8', 'Invoice 7', 'Annual report'],
  )
  assert.deepEqual(
    items[0],
    (await api.get(`/api/v1/documents/${idsByTitle.get('Contract')}`, { token: ann.token })).json,
  )
})

test('another owner and an admin see only their own documents', async () => {
  assert.deepEqual(await listTitles('', bob.token), ['Not for Ann'])
  const setRole = async (role: string): Promise<void> => {
    const path = `/api/v1/auth/users/${bob.id}/role?role=${role}`
    assert.equal((await api.call('PATCH', path, { token: admin.token })).status, 200)
  }
  await setRole('admin')
  try {
    assert.equal((await api.get('/api/v1/auth/me', { token: bob.token })).json.role, 'admin')
    assert.deepEqual(await listTitles('', bob.token), ['Not for Ann'])
  } finally {
    await setRole('user')
  }
})

test('an owner without documents gets an empty page', async () => {
  const { token } = await api.register(createEmail('nobody'))
  assert.deepEqual(await list('', token), {
    items: [],
    total: 0,
    total_is_exact: true,
    page: 1,
    page_size: 50,
    next: null,
  })
})

test('pages have no gaps, and the total stays the same', async () => {
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

test('page and page_size have limits', async () => {
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

test('a cursor works after titles of maximum length in any script', async () => {
  const cat = await api.register(createEmail('cat'))
  const longest = ['\u6b63'.repeat(300), '"'.repeat(300), `a${'\u0001'.repeat(298)}z`, 'z']
  for (const title of longest) await upload(cat.token, title, { note: 'kept' })
  for (const search of ['sort=title', 'sort=-title', 'sort=title&search=kept'])
    assert.equal((await followTitles(search, cat.token)).length, longest.length, search)
})

test('a cursor continues in the order of the list, by date or by relevance', async () => {
  for (const search of ['', 'tag=2024', 'search=invoice', 'search=the']) {
    const all = await listTitles(`?page_size=200&${search}`)
    assert.deepEqual(await followTitles(search), all)
    assert.ok(all.length > 1)
  }
  const { next } = (await api.get('/api/v1/documents?page_size=1', { token: ann.token })).json
  const refused = await api.get(`/api/v1/documents?search=invoice&cursor=${next}`, { token: ann.token })
  assert.deepEqual([refused.status, refused.json.errors[0].loc], [422, ['query', 'cursor']])
})

test('filters by kind and tag, also combined', async () => {
  assert.deepEqual(await listTitles('?kind=invoice'), ['Invoice 8', 'Invoice 7'])
  assert.deepEqual(await listTitles('?tag=2024'), ['Contract', 'Invoice 7'])
  assert.deepEqual(await listTitles('?tag=2024&kind=invoice'), ['Invoice 7'])
  assert.deepEqual(await listTitles('?kind=Invoice'), [], 'a kind is not a search')
  assert.equal((await list('?kind=invoice&page_size=1')).total, 2, 'the total counts what the filter leaves')
})

test('repeated tags select documents with all of them', async () => {
  assert.deepEqual(await listTitles('?tag=2024&tag=paid'), ['Invoice 7'])
  assert.deepEqual(await listTitles('?tag=2024&tag=2024'), ['Contract', 'Invoice 7'])
  assert.deepEqual(await listTitles('?tag=2024&tag=none'), [])
  assert.deepEqual(await listTitles('?tag=2024&tag=paid&search=invoice'), ['Invoice 7'])
  const many = Array.from({ length: 21 }, (_, n) => `tag=${n}`).join('&')
  assert.equal((await api.get(`/api/v1/documents?${many}`, { token: ann.token })).status, 422)
})

test('sorts by title, date or creation, in both directions; `from` and `to` accept days', async () => {
  const { id, token } = await api.register(createEmail('sorter'))
  for (const [title, document_date] of [
    ['beta', '2026-03-01'],
    ['Alpha', '2026-01-31'],
    ['gamma', ''],
    ['alpha', '2026-03-01'],
  ] as const)
    await upload(token, title, document_date === '' ? { note: '1' } : { document_date })
  await query(
    `update document set received_at = '2026-02-10T23:30:00Z' where title = 'gamma' and owner_id = $1`,
    [id],
  )
  const sorted = (sort: string, more = '') => listTitles(`?sort=${sort}${more}`, token)
  assert.deepEqual(await sorted('received_at'), ['beta', 'Alpha', 'gamma', 'alpha'])
  assert.deepEqual(await sorted('-received_at'), ['alpha', 'gamma', 'Alpha', 'beta'])
  assert.deepEqual(await sorted('title'), ['Alpha', 'alpha', 'beta', 'gamma'])
  assert.deepEqual(await sorted('-title'), ['gamma', 'beta', 'alpha', 'Alpha'])
  assert.deepEqual(await sorted('document_date'), ['Alpha', 'gamma', 'beta', 'alpha'])
  assert.deepEqual(await sorted('-document_date'), ['alpha', 'beta', 'gamma', 'Alpha'])
  assert.deepEqual(await sorted('title', '&from=2026-02-10'), ['alpha', 'beta', 'gamma'])
  assert.deepEqual(await sorted('title', '&to=2026-02-10'), ['Alpha', 'gamma'])
  assert.deepEqual(await listTitles('?from=2026-03-01&to=2026-03-01', token), ['alpha', 'beta'])
  assert.deepEqual(await listTitles('?from=2026-03-02', token), [])
  assert.deepEqual(await sorted('title', '&search=alpha'), ['Alpha', 'alpha'])
  assert.deepEqual(await sorted('-document_date', '&search=alpha'), ['alpha', 'Alpha'])
  assert.deepEqual(await listTitles('?search=alpha&to=2026-02-01', token), ['Alpha'])
  for (const sort of ['title', '-title', 'document_date', '-document_date', 'title&search=alpha'])
    assert.deepEqual(await followTitles(`sort=${sort}`, token), await sorted(sort), sort)
  for (const [search, name] of [
    ['sort=bytes', 'sort'],
    ['sort=--title', 'sort'],
    ['from=2026-02-30', 'from'],
    ['to=0000-01-01', 'to'],
    ['to=yesterday', 'to'],
    ['sort=title&trashed=true', 'sort'],
  ]) {
    const { status, json } = await api.get(`/api/v1/documents?${search}`, { token })
    assert.deepEqual([status, json.errors[0].loc], [422, ['query', name]], search)
  }
})

test('sorts by size and number of pages, with tags and searches, too', async () => {
  const { id, token } = await api.register(createEmail('sizes'))
  for (const [title, pages] of [
    ['middle', 3],
    ['the longest title', null],
    ['x', 12],
  ] as const) {
    await upload(token, title)
    await query(`update document set page_count = $3, tags = '{all}' where title = $2 and owner_id = $1`, [
      id,
      title,
      pages,
    ])
  }
  for (const more of ['', '&tag=all', '&search=all'])
    for (const [sort, titles] of [
      ['byte_size', ['x', 'middle', 'the longest title']],
      ['-byte_size', ['the longest title', 'middle', 'x']],
      ['page_count', ['the longest title', 'middle', 'x']],
      ['-page_count', ['x', 'middle', 'the longest title']],
    ] as const) {
      assert.deepEqual(await listTitles(`?sort=${sort}${more}`, token), titles, sort + more)
      assert.deepEqual(await followTitles(`sort=${sort}${more}`, token), titles, sort + more)
    }
})

test('filters by tags in every order, whichever tag is rarer', async () => {
  const { token } = await api.register(createEmail('tagger'))
  for (const [title, kind, document_date, tags] of [
    ['beta', 'letter', '2026-03-01', ['often', 'seldom']],
    ['Alpha', 'letter', '2026-01-31', ['often']],
    ['delta', 'bill', '2026-03-01', ['seldom', 'often']],
    ['gamma', 'bill', '2026-02-10', ['often', 'often too']],
    ['zeta', 'bill', '2026-03-02', ['seldom too']],
  ] as const) {
    const id = await upload(token, title, { kind, document_date })
    await query('update document set tags = $2 where id = $1', [id, tags])
  }
  const orders = {
    received_at: ['beta', 'Alpha', 'delta', 'gamma'],
    document_date: ['Alpha', 'gamma', 'beta', 'delta'],
    title: ['Alpha', 'beta', 'delta', 'gamma'],
  }
  for (const [sort, up] of Object.entries(orders)) {
    const both = up.filter((title) => ['beta', 'delta'].includes(title))
    for (const [search, expected] of [
      ['tag=often', up],
      ['tag=often&tag=seldom', both],
      ['tag=seldom&tag=often', both],
      ['tag=often&kind=bill&from=2026-02-11', up.filter((title) => title === 'delta')],
      ['tag=often&to=2026-02-10', up.filter((title) => ['Alpha', 'gamma'].includes(title))],
    ] as const) {
      assert.deepEqual(await followTitles(`sort=${sort}&${search}`, token), expected, `${sort} ${search}`)
      assert.deepEqual(
        await listTitles(`?sort=-${sort}&${search}`, token),
        expected.toReversed(),
        `-${sort} ${search}`,
      )
      assert.equal((await list(`?${search}&page_size=1`, token)).total, expected.length)
    }
  }
})

test('searches titles, notes, tags and the text of pages', async () => {
  assert.deepEqual(await listTitles('?search=invoice'), ['Invoice 8', 'Invoice 7'])
  assert.deepEqual((await listTitles('?search=harbour')).sort(), ['Annual report', 'Contract'])
  assert.deepEqual(await listTitles('?search=paid%20-full'), [])
  assert.deepEqual(await listTitles('?search=paid'), ['Invoice 7'])
  assert.deepEqual(await listTitles('?search=WINTER%20supplies'), ['Annual report'])
  assert.deepEqual(await listTitles('?search=%22signed%20by%22'), ['Contract'])
  assert.deepEqual(await listTitles('?search=invoice&tag=paid'), ['Invoice 7'])
})

test('an empty search is ignored, and no words or operators cause an error', async () => {
  assert.equal((await list('?search=')).total, 4)
  for (const words of ['!!!', '"', "'; drop table document --", '\\', '&|!()', ':*', 'or or', '-']) {
    assert.equal(
      (await api.get(`/api/v1/documents?search=${encodeURIComponent(words)}`, { token: ann.token })).status,
      200,
      words,
    )
  }
})

test('superseded documents are hidden by default', async () => {
  await query('update document set supersedes_id = $1 where id = $2', [
    idsByTitle.get('Invoice 7'),
    idsByTitle.get('Invoice 8'),
  ])
  assert.deepEqual(await listTitles('?kind=invoice'), ['Invoice 8'])
  const { items, total } = await list('?kind=invoice&include_superseded=true')
  assert.equal(total, 2)
  const [newer, older] = items as (Document & {
    supersedes_id: number | null
    superseded_by_id: number | null
  })[]
  assert.deepEqual([newer!.supersedes_id, older!.superseded_by_id], [older!.id, newer!.id])
  for (const [search, expected] of [
    ['?tag=paid', []],
    ['?tag=paid&include_superseded=true', ['Invoice 7']],
    ['?tag=paid&kind=invoice&include_superseded=true', ['Invoice 7']],
  ] as const) {
    assert.deepEqual(await listTitles(search), expected, search)
    assert.equal((await list(search)).total, expected.length, search)
  }
  assert.equal(
    (await api.get('/api/v1/documents?include_superseded=maybe', { token: ann.token })).status,
    422,
  )
})

test('a deleted document is in no list, and the one that it superseded returns', async () => {
  assert.equal(
    (await api.call('DELETE', `/api/v1/documents/${idsByTitle.get('Invoice 8')}`, { token: ann.token }))
      .status,
    204,
  )
  const { items, total } = await list('?kind=invoice')
  assert.deepEqual([items.map(({ title }) => title), total], [['Invoice 7'], 1])
})
