import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'

const { api, query } = await getSharedEdge()
const PATH = '/api/v1/documents'
let count = 0
const registerAccount = async () => (await api.register(createEmail())).token
const owner = await registerAccount()

async function createDocument(token: string, ...tags: string[]): Promise<number> {
  const { json } = await api.upload(token, `Tagged ${++count}`)
  for (const label of tags) assert.equal((await add(json.id, label, token)).status, 200)
  return json.id
}
const add = (id: number | string, label: unknown, token = owner) =>
  api.post(`${PATH}/${id}/tags`, { token, json: { label } })
const remove = (id: number | string, label: string, token = owner) =>
  api.call('DELETE', `${PATH}/${id}/tags/${encodeURIComponent(label)}`, { token })
const tags = async (token: string) => (await api.get(`${PATH}/tags`, { token })).json

test('adding a tag trims it, keeps the order, ignores duplicates, and returns the document', async () => {
  const id = await createDocument(owner)
  assert.deepEqual((await add(id, ' b ')).json.tags, ['b'])
  assert.deepEqual((await add(id, 'a')).json.tags, ['b', 'a'])
  const again = await add(id, 'b')
  assert.deepEqual([again.status, again.json.tags], [200, ['b', 'a']])
  assert.deepEqual(again.json, (await api.get(`${PATH}/${id}`, { token: owner })).json)
})

test('a tag with any characters can be removed by its label', async () => {
  const labels = ['plain', 'with space', 'a/b', '100 %', 'Ünï', '?#&', '日本']
  const id = await createDocument(owner, ...labels)
  for (const [i, label] of labels.entries()) {
    const answer = await remove(id, label)
    assert.deepEqual([answer.status, answer.json.tags], [200, labels.slice(i + 1)])
  }
})

test('a missing tag or document is 404', async () => {
  const id = await createDocument(owner, 'x')
  assert.deepEqual((await remove(id, 'y')).json, {
    detail: 'The document has no such tag',
    code: 'document.tag_missing',
  })
  assert.deepEqual((await remove(id, 'y')).status, 404)
  const foreign = await createDocument(await registerAccount(), 'x')
  for (const missing of [foreign, 999_999]) {
    for (const answer of [await add(missing, 'x'), await remove(missing, 'x')])
      assert.deepEqual(
        [answer.status, answer.json],
        [404, { detail: 'Document not found', code: 'document.missing' }],
      )
  }
})

test('a label has 1 to 64 characters', async () => {
  const id = await createDocument(owner)
  for (const label of ['', '  ', 'x'.repeat(65), 5, null, undefined])
    assert.equal((await add(id, label)).status, 422, String(label))
  assert.equal((await add(id, 'x'.repeat(64))).status, 200)
})

test('a document has at most 100 tags, even when they are added concurrently', async () => {
  const id = await createDocument(owner)
  await query(
    `update document set tags = array(select 't' || n from generate_series(1, 90) n) where id = $1`,
    [id],
  )
  const answers = await Promise.all(Array.from({ length: 15 }, (_, i) => add(id, `u${i}`)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 10)
  assert.equal(answers.filter(({ status }) => status === 400).length, 5)
  assert.equal((await add(id, 'u0')).status, answers[0]!.status)
})

test('tags are listed with their counts over all own documents, most used first', async () => {
  const token = await registerAccount()
  assert.deepEqual(await tags(token), [])
  const [a] = [
    await createDocument(token, 'x', 'y'),
    await createDocument(token, 'x', 'z'),
    await createDocument(token, 'x', 'y'),
  ]
  await createDocument(await registerAccount(), 'x')
  assert.deepEqual(await tags(token), [
    { label: 'x', count: 3 },
    { label: 'y', count: 2 },
    { label: 'z', count: 1 },
  ])
  await api.call('DELETE', `${PATH}/${a}`, { token })
  const [old, young] = [await createDocument(token, 'old'), await createDocument(token)]
  await api.call('PATCH', `${PATH}/${young}`, { token, json: { supersedes_id: old } })
  assert.deepEqual(await tags(token), [
    { label: 'x', count: 2 },
    { label: 'old', count: 1 },
    { label: 'y', count: 1 },
    { label: 'z', count: 1 },
  ])
  assert.equal((await api.get(`${PATH}/tags`)).status, 401)
})

test('the list filters by tag and counts the matches', async () => {
  const token = await registerAccount()
  const [one, old] = [await createDocument(token, 'a'), await createDocument(token, 'a')]
  const young = await createDocument(token, 'ab')
  await api.call('PATCH', `${PATH}/${young}`, { token, json: { supersedes_id: old } })
  const shown = async (query: string) => {
    const { json } = await api.get(`${PATH}?${query}`, { token })
    return [json.total, json.total_is_exact, json.items.map((item: { id: number }) => item.id)]
  }
  assert.deepEqual(await shown('tag=a'), [1, true, [one]])
  assert.deepEqual(await shown('tag=a&include_superseded=true'), [2, true, [old, one]])
  assert.deepEqual(await shown('tag=a&page=2'), [1, true, []])
  assert.deepEqual(await shown('tag=a&kind=other'), [1, true, [one]])
  assert.deepEqual(await shown('tag=a&kind=letter'), [0, true, []])
  assert.deepEqual(await shown('tag=b'), [0, true, []])
})
