import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'

const { api, query } = await getSharedEdge()
const PATH = '/api/v1/documents'
const owner = await api.register(createEmail('owner'))
const other = await api.register(createEmail('other'))
let count = 0

async function createDocument(token = owner.token, fields: Record<string, string> = {}): Promise<number> {
  const answer = await api.upload(token, `Text number ${++count}`, { fields })
  assert.equal(answer.status, 201)
  return answer.json.id as number
}
const patch = (id: number | string, json: unknown, token = owner.token) =>
  api.call('PATCH', `${PATH}/${id}`, { token, json })
const get = async (id: number) => (await api.get(`${PATH}/${id}`, { token: owner.token })).json

describe('changing a document', () => {
  test('changes exactly the given fields', async () => {
    const id = await createDocument(owner.token, { title: 'Before', note: 'stays' })
    const before = await get(id)
    const changes = {
      title: ' After ',
      kind: 'invoice',
      document_date: '2024-02-29',
      channel: 'mail',
      protected: true,
    }
    const answer = await patch(id, changes)
    assert.equal(answer.status, 200)
    const { updated_at, ...rest } = answer.json
    assert.match(updated_at, /Z$/)
    const { updated_at: _, ...old } = before
    assert.deepEqual(rest, { ...old, ...changes, title: 'After' })
    assert.deepEqual(await get(id), answer.json)
  })

  test('null clears optional fields and leaves required ones unchanged', async () => {
    const id = await createDocument(owner.token, { note: 'n', channel: 'c', document_date: '2024-01-01' })
    const cleared = await patch(id, { note: null, channel: null, document_date: null, supersedes_id: null })
    const { note, channel, document_date, supersedes_id } = cleared.json
    assert.deepEqual([note, channel, document_date, supersedes_id], [null, null, null, null])
    for (const field of ['title', 'kind', 'protected']) {
      const answer = await patch(id, { [field]: null })
      assert.deepEqual([answer.status, answer.json[field]], [200, cleared.json[field]])
    }
  })

  test('without fields changes nothing', async () => {
    const id = await createDocument()
    const before = await get(id)
    const answer = await patch(id, {})
    assert.deepEqual([answer.status, answer.json], [200, before])
  })

  test('rejects invalid values and changes nothing', async () => {
    const id = await createDocument()
    const before = await get(id)
    const bad = [
      { title: '' },
      { title: ' ' },
      { title: 'x'.repeat(301) },
      { kind: 'x'.repeat(33) },
      { document_date: '2023-02-29' },
      { document_date: '0000-01-01' },
      { note: 'x'.repeat(10_001) },
      { channel: 'x'.repeat(101) },
      { protected: 'yes' },
      { supersedes_id: '1' },
      { supersedes_id: 0 },
      { supersedes_id: 2 ** 53 },
      { source: 'mine' },
      { title: 'good', unknown: 1 },
    ]
    for (const changes of bad) assert.equal((await patch(id, changes)).status, 422, JSON.stringify(changes))
    assert.deepEqual(await get(id), before)
  })

  test("missing, deleted and other owners' documents give the same 404", async () => {
    const [foreign, deleted] = [await createDocument(other.token), await createDocument()]
    await api.call('DELETE', `${PATH}/${deleted}`, { token: owner.token })
    for (const id of [foreign, deleted, 999_999]) {
      for (const changes of [{ title: 'x' }, {}]) {
        const answer = await patch(id, changes)
        assert.deepEqual(
          [answer.status, answer.text],
          [404, '{"detail":"Document not found","code":"document.missing"}'],
        )
      }
    }
    assert.equal((await patch('x', { title: 'x' })).status, 422)
    assert.equal((await api.call('PATCH', `${PATH}/1`, { json: {} })).status, 401)
  })
})

describe('protection', () => {
  test('a protected document cannot be deleted until its protection is removed', async () => {
    const id = await createDocument()
    await patch(id, { protected: true })
    const refused = await api.call('DELETE', `${PATH}/${id}`, { token: owner.token })
    assert.equal(refused.status, 409)
    assert.equal((await get(id)).protected, true)
    await patch(id, { protected: false })
    assert.equal((await api.call('DELETE', `${PATH}/${id}`, { token: owner.token })).status, 204)
    assert.equal((await api.get(`${PATH}/${id}`, { token: owner.token })).status, 404)
  })
})

describe('supersession', () => {
  const listed = async (more = ''): Promise<number[]> =>
    (await api.get(`${PATH}?page_size=200${more}`, { token: owner.token })).json.items.map(
      (item: { id: number }) => item.id,
    )

  test('a superseded document leaves the default list, names its successor, and can return', async () => {
    const [old, young] = [await createDocument(), await createDocument()]
    const answer = await patch(young, { supersedes_id: old })
    assert.deepEqual([answer.status, answer.json.supersedes_id], [200, old])
    assert.equal((await get(old)).superseded_by_id, young)
    assert.equal((await listed()).includes(old), false)
    assert.equal((await listed('&include_superseded=true')).includes(old), true)
    await patch(young, { supersedes_id: null })
    assert.equal((await get(old)).superseded_by_id, null)
    assert.equal((await listed()).includes(old), true)
  })

  test('repeating a supersession changes nothing', async () => {
    const [old, young] = [await createDocument(), await createDocument()]
    for (let i = 0; i < 2; i++) assert.equal((await patch(young, { supersedes_id: old })).status, 200)
  })

  test('superseding itself, a missing, deleted, foreign or taken document, or in a cycle is 400 with the reason', async () => {
    const [a, b, c, d] = [
      await createDocument(),
      await createDocument(),
      await createDocument(),
      await createDocument(),
    ]
    const [foreign, deleted] = [await createDocument(other.token), await createDocument()]
    await api.call('DELETE', `${PATH}/${deleted}`, { token: owner.token })
    await patch(b, { supersedes_id: a })
    await patch(c, { supersedes_id: b })
    const cases: [number, number, RegExp][] = [
      [a, a, /itself/],
      [d, 999_999, /does not exist/],
      [d, foreign, /does not exist/],
      [d, deleted, /does not exist/],
      [d, a, /already superseded/],
      [a, c, /directly or indirectly/],
    ]
    for (const [id, target, words] of cases) {
      const answer = await patch(id, { supersedes_id: target })
      assert.equal(answer.status, 400, `${id} -> ${target}: ${answer.text}`)
      assert.match(answer.json.detail, words)
    }
  })

  test('deleting the successor lists the older document again, which can then be superseded', async () => {
    const [old, young, next] = [await createDocument(), await createDocument(), await createDocument()]
    await patch(young, { supersedes_id: old })
    await api.call('DELETE', `${PATH}/${young}`, { token: owner.token })
    assert.equal((await get(old)).superseded_by_id, null)
    assert.equal((await patch(next, { supersedes_id: old })).status, 200)
  })

  test('a document whose superseded document was deleted can be changed', async () => {
    const [old, young] = [await createDocument(), await createDocument()]
    await patch(young, { supersedes_id: old })
    await api.call('DELETE', `${PATH}/${old}`, { token: owner.token })
    const answer = await patch(young, { title: 'still mine' })
    assert.deepEqual([answer.status, answer.json.title], [200, 'still mine'], answer.text)
  })

  test('concurrent supersessions of one document, or of each other, let exactly one succeed', async () => {
    for (let round = 0; round < 8; round++) {
      const target = await createDocument()
      const rivals = await Promise.all(Array.from({ length: 5 }, () => createDocument()))
      const answers = await Promise.all(rivals.map((id) => patch(id, { supersedes_id: target })))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400])
      const [a, b] = [await createDocument(), await createDocument()]
      const both = await Promise.all([patch(a, { supersedes_id: b }), patch(b, { supersedes_id: a })])
      assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400])
    }
    const circles = await query(
      `select a.id from document a join document b on a.supersedes_id = b.id and b.supersedes_id = a.id`,
    )
    assert.deepEqual(circles, [])
  })
})
