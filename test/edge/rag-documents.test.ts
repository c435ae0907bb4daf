import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { createKey } from './api-keys-help.ts'
import { startEdge } from './harness.ts'
import { assertRefused, createPeopleMaker, type Person } from './orgs-help.ts'
import { startRag } from './rag-help.ts'

/** Tests the ownership of document collections and their updates when documents change. */

const { api, url, write, index, query } = await startRag()
const createPeople = createPeopleMaker(api, query)
const [owner, other] = (await createPeople(2)) as [Person, Person]
const [admin] = (await createPeople(1, 'admin')) as [Person]
const closedEdge = await startEdge(url, { env: { OPEN_AREAS: 'jobs' } })

let count = 0
/** Creates a document with extracted pages. */
async function add(who: Person, title: string, ...pages: readonly string[]): Promise<number> {
  const uploaded = await api.upload(who.token, `bytes ${++count}`, { fields: { title } })
  assert.equal(uploaded.status, 201, uploaded.text)
  await query(
    `insert into document_page (document_id, page_number, status, method, text, job_id)
     select $1, n, 'read', 'text_layer', page, gen_random_uuid() from unnest($2::text[]) with ordinality p(page, n)`,
    [uploaded.json.id, pages],
  )
  return uploaded.json.id
}
const indexCollection = (who: Person, collection_name: string, documents: object = {}) =>
  index({ collection_name, documents }, { token: who.token })
interface Result {
  readonly content: string
  readonly metadata: Readonly<Record<string, unknown>>
}
const search = (who: Person | null, collection_name: string, words: string, more: object = {}) =>
  api.post('/rag/search', {
    json: { collection_name, query: words, ...more },
    ...(who === null ? {} : { token: who.token }),
  })
const findResults = async (
  who: Person,
  collection: string,
  words: string,
  more: object = {},
): Promise<Result[]> => {
  const answer = await search(who, collection, words, more)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.results
}
const findContents = async (who: Person, collection: string, words: string): Promise<string[]> =>
  (await findResults(who, collection, words)).map(({ content }) => content).sort()
const waitForContents = (collection: string, words: string, expected: readonly string[]): Promise<unknown> =>
  until(`${collection} to contain ${expected.join(' and ') || 'nothing'}`, async () => {
    const seen = await findContents(owner, collection, words)
    return JSON.stringify(seen) === JSON.stringify(expected)
  })
const documentPath = (id: number, rest = ''): string => `/api/v1/documents/${id}${rest}`

describe('a collection of documents', () => {
  test('finds pages, with document and title', async () => {
    const lease = await add(owner, 'The lease', 'The rent is due monthly.', 'Cats are allowed.')
    await add(other, 'Theirs', 'The rent of others.')
    const indexed = await indexCollection(owner, 'contracts')
    assert.equal(indexed.status, 200, indexed.text)
    assert.deepEqual([indexed.json.documents_added, indexed.json.total_chunks], [1, 2])
    const [hit, ...more] = await findResults(owner, 'contracts', 'cat')
    assert.deepEqual(more, [])
    assert.equal(hit!.content, 'Cats are allowed.')
    const { source, document_id, file_name, extension, format, page } = hit!.metadata
    assert.deepEqual(
      { source, document_id, file_name, extension, format, page },
      {
        source: `documents/${lease}`,
        document_id: lease,
        file_name: 'The lease',
        extension: '',
        format: 'document',
        page: 2,
      },
    )
    assert.equal((await findResults(owner, 'contracts', 'lease')).length, 2, 'by its title, too')
    assert.equal(
      (await findResults(owner, 'contracts', 'rent', { filter_metadata: { document_id: lease } })).length,
      1,
    )
    assert.equal(
      (await findResults(owner, 'contracts', 'rent', { filter_metadata: { document_id: 0 } })).length,
      0,
    )
    const info = await api.get('/rag/collections/contracts', { token: owner.token })
    assert.deepEqual(info.json.metadata, {
      documents: { tag: null, kind: null, ids: null, search: null },
    })
    const files = await api.get('/rag/collections/contracts/files', { token: owner.token })
    assert.deepEqual(files.json.files, [{ source: `documents/${lease}`, chunks: 2 }])
  })

  test('has the fields of its documents as metadata, without an indexing run', async () => {
    const id = await add(owner, 'Lease of a boat', 'The boat is blue.')
    await add(owner, 'Boat song', 'The boat is old.')
    const path = documentPath(id)
    const { token } = owner
    await api.call('PATCH', path, { json: { kind: 'contract', document_date: '2025-03-01' }, token })
    await api.post(`${path}/tags`, { json: { label: 'boats' }, token })
    const metadata = { team: 'red' }
    const indexed = await index({ collection_name: 'boats', documents: {}, metadata }, { token })
    assert.equal(indexed.status, 200, indexed.text)
    const find = (filter_metadata: object) => findResults(owner, 'boats', 'boat', { filter_metadata })
    const [hit, ...more] = await find({ tags: { $in: ['boats'] }, kind: 'contract', team: 'red' })
    assert.deepEqual(more, [])
    const { title, kind, tags, document_date, received_at, document_source, channel, team } = hit!.metadata
    assert.match(String(received_at), /^\d{4}-\d\d-\d\dT/)
    assert.deepEqual(
      { title, kind, tags, document_date, document_source, channel, team },
      {
        ...{ title: 'Lease of a boat', kind: 'contract', tags: ['boats'], document_date: '2025-03-01' },
        ...{ document_source: 'upload', channel: null, team: 'red' },
      },
    )
    assert.equal((await find({ document_date: { $gte: '2025-01-01', $lt: '2026' } })).length, 1)
    assert.equal((await find({ title: { $contains: 'song' }, document_date: null })).length, 1)
    await api.call('DELETE', `${path}/tags/boats`, { token })
    await api.call('PATCH', path, { json: { title: 'Boat lease' }, token })
    assert.deepEqual(await find({ tags: 'boats' }), [])
    assert.equal((await find({ title: 'Boat lease' }))[0]!.metadata.file_name, 'Boat lease')
    await index({ collection_name: 'boats', documents: {}, metadata: { team: 'blue' } }, { token })
    assert.equal((await find({ team: 'blue' })).length, 2)
    assert.equal((await find({ team: 'red' })).length, 0)
  })

  test('rejects metadata that are fields of documents, and those of files', async () => {
    for (const [more, ...loc] of [
      [{ metadata: { tags: ['a'] } }, 'metadata', 'tags'],
      [{ metadata: { document_id: 1 } }, 'metadata', 'document_id'],
      [{ file_metadata: { a: { b: 1 } } }, 'documents'],
    ] as const) {
      const answer = await index({ collection_name: 'no', documents: {}, ...more }, { token: owner.token })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc, ['body', ...loc])
    }
  })

  test('is visible to its owner and admins only', async () => {
    await add(owner, 'A secret', 'secret words')
    await indexCollection(owner, 'secret')
    assert.deepEqual(await findContents(admin, 'secret', 'secret'), ['secret words'])
    for (const who of [other, null]) {
      const options = who === null ? {} : { token: who.token }
      assertRefused(await search(who, 'secret', 'secret'), 404, 'Collection not found')
      for (const path of ['/rag/collections/secret', '/rag/collections/secret/files'])
        assertRefused(await api.get(path, options), 404, 'Collection not found')
      assertRefused(await api.call('DELETE', '/rag/collections/secret', options), 404, 'Collection not found')
      assert.ok(!(await api.get('/rag/collections', options)).json.includes('secret'))
    }
    for (const { token } of [owner, admin])
      assert.ok((await api.get('/rag/collections', { token })).json.includes('secret'))
  })

  test('can be created only by API keys that may read documents', async () => {
    await add(owner, 'For the key', 'read by programs')
    const by = async (...scopes: readonly string[]): Promise<Person> => ({
      ...owner,
      token: (await createKey(api, owner, { scopes })).key,
    })
    const refused = await indexCollection(await by('rag:write'), 'of a key')
    assertRefused(refused, 403, 'The API key lacks the scope documents:read')
    assertRefused(await search(owner, 'of a key', 'programs'), 404, 'Collection not found')
    const both = await by('rag:write', 'documents:read')
    assert.equal((await indexCollection(both, 'of a key')).status, 200)
    assert.deepEqual(await findContents(both, 'of a key', 'programs'), ['read by programs'])
  })

  test('has a name per owner', async () => {
    write({ 'plain/a.txt': 'plain words' })
    await indexCollection(owner, 'mine')
    await index({ path: 'plain', collection_name: 'plain' }, { token: admin.token })
    for (const answer of [
      await indexCollection(other, 'mine'),
      await indexCollection(admin, 'mine'),
      await indexCollection(owner, 'plain'),
      await index({ path: 'plain', collection_name: 'mine' }, { token: admin.token }),
    ])
      assertRefused(answer, 409, 'Another collection has this name')
  })

  test('can be deleted by its owner or an admin, which frees the name', async () => {
    for (const who of [owner, admin]) {
      await indexCollection(owner, 'short')
      const { status } = await api.call('DELETE', '/rag/collections/short', { token: who.token })
      assert.equal(status, 200)
      assertRefused(await search(owner, 'short', 'words'), 404, 'Collection not found')
    }
    assert.equal((await indexCollection(other, 'short')).status, 200)
  })

  test('can be indexed again with another selection', async () => {
    const [a, b] = [await add(owner, 'First', 'apples'), await add(owner, 'Second', 'more apples')]
    await indexCollection(owner, 'chosen', { ids: [a, b] })
    assert.equal((await findResults(owner, 'chosen', 'apples')).length, 2)
    const again = await indexCollection(owner, 'chosen', { ids: [b] })
    assert.deepEqual([again.json.documents_unchanged, again.json.documents_removed], [1, 1])
    assert.deepEqual(await findContents(owner, 'chosen', 'apples'), ['more apples'])
  })

  test('requires documents of the caller, and admin rights for files', async () => {
    const body = { collection_name: 'x', documents: {} }
    assertRefused(await index(body), 401)
    assertRefused(await closedEdge.post('/rag/index', { json: body }), 401)
    const files = { collection_name: 'x', path: '.' }
    assertRefused(await closedEdge.post('/rag/index', { json: files, token: owner.token }), 403)
    assert.equal((await closedEdge.post('/rag/index', { json: body, token: owner.token })).status, 200)
    write({ 'plain/a.txt': 'plain words' })
    await index({ path: 'plain', collection_name: 'of files' }, { token: admin.token })
    const path = '/rag/collections/of%20files'
    assertRefused(await closedEdge.call('DELETE', path, { token: owner.token }), 403)
    assert.equal((await closedEdge.call('DELETE', path, { token: admin.token })).status, 200)
  })

  test('requires either files or documents', async () => {
    for (const [more, loc] of [
      [{}, 'path'],
      [{ path: '.', documents: {} }, 'path'],
      [{ documents: {}, extensions: ['md'] }, 'documents'],
      [{ documents: {}, exclude_patterns: ['a'] }, 'documents'],
      [{ documents: { ids: [] } }, 'documents'],
      [{ documents: { ids: [0] } }, 'documents'],
      [{ documents: { ids: Array.from({ length: 1001 }, (_, i) => i + 1) } }, 'documents'],
      [{ documents: { tag: '' } }, 'documents'],
      [{ documents: { kind: 'k'.repeat(33) } }, 'documents'],
      [{ documents: { search: ' ' } }, 'documents'],
      [{ documents: { other: 1 } }, 'documents'],
      [{ documents: [] }, 'documents'],
    ] as const) {
      const answer = await index({ collection_name: 'x', ...more }, { token: owner.token })
      assertRefused(answer, 422)
      assert.deepEqual(answer.json.errors[0].loc.slice(0, 2), ['body', loc], JSON.stringify(more))
    }
  })
})

// Each update is delayed by two seconds, so run the tests concurrently.
describe('a collection is updated', { concurrency: true }, () => {
  const { token } = owner

  test('when its documents are tagged', async () => {
    const a = await add(owner, 'Figs', 'figs ripen')
    const b = await add(owner, 'Figs too', 'figs dry')
    const tag = (id: number) => api.post(documentPath(id, '/tags'), { json: { label: 'fig' }, token })
    await tag(a)
    await indexCollection(owner, 'figs', { tag: 'fig' })
    assert.deepEqual(await findContents(owner, 'figs', 'figs'), ['figs ripen'])
    await tag(b)
    await waitForContents('figs', 'figs', ['figs dry', 'figs ripen'])
    await api.call('DELETE', documentPath(a, '/tags/fig'), { token })
    await waitForContents('figs', 'figs', ['figs dry'])
  })

  test('when its documents change', async () => {
    const id = await add(owner, 'Sharon fruit', 'soft when ripe')
    await indexCollection(owner, 'fruit', { ids: [id] })
    await api.call('PATCH', documentPath(id), { json: { title: 'Persimmons' }, token })
    await waitForContents('fruit', 'persimmons', ['soft when ripe'])
  })

  test('with its metadata', async () => {
    const id = await add(owner, 'Plums', 'plums are blue')
    const { json } = await api.post(documentPath(id, '/tags'), { json: { label: 'plum' }, token })
    const more = { documents: { tag: 'plum' }, metadata: { shelf: 7 } }
    assert.equal((await index({ collection_name: 'plums', ...more }, { token })).status, 200, json)
    const late = await add(owner, 'More plums', 'plums are red')
    await api.post(documentPath(late, '/tags'), { json: { label: 'plum' }, token })
    await waitForContents('plums', 'plums', ['plums are blue', 'plums are red'])
    const found = await findResults(owner, 'plums', 'plums', { filter_metadata: { shelf: 7 } })
    assert.equal(found.length, 2)
    const info = await api.get('/rag/collections/plums', { token })
    assert.deepEqual(info.json.metadata.metadata, { shelf: 7 })
  })

  test('when its documents are deleted and restored', async () => {
    const id = await add(owner, 'Dates', 'dates are sweet')
    await indexCollection(owner, 'dates', { ids: [id] })
    assert.deepEqual(await findContents(owner, 'dates', 'dates'), ['dates are sweet'])
    assert.equal((await api.call('DELETE', documentPath(id), { token })).status, 204)
    assert.deepEqual(await findContents(owner, 'dates', 'dates'), [], 'immediately, before it is indexed')
    await until('the collection to be indexed', async () => {
      const { json } = await api.get('/rag/collections/dates', { token })
      return json.document_count === 0
    })
    assert.equal((await api.post(documentPath(id, '/restore'), { token })).status, 200)
    await waitForContents('dates', 'dates', ['dates are sweet'])
    assert.equal((await api.call('DELETE', documentPath(id, '?permanent=true'), { token })).status, 204)
    assert.deepEqual(await findContents(owner, 'dates', 'dates'), [])
  })

  test('only for documents that it contains', async () => {
    const [a, b] = [await add(owner, 'One', 'one'), await add(owner, 'Two', 'two')]
    const [who] = (await createPeople(1)) as [Person]
    await indexCollection(owner, 'one', { ids: [a] })
    await api.call('PATCH', documentPath(b), { json: { note: 'n' }, token: owner.token })
    assertRefused(await api.call('PATCH', documentPath(a), { json: { note: 'n' }, token: who.token }), 404)
    const jobs = await query(
      `select count(*)::int as n from job where name = 'rag.refresh_documents' and payload ->> 'name' = 'one'`,
    )
    assert.deepEqual(jobs, [{ n: 0 }])
  })
})
