import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CHAT_PATH, openStream, postStream, startChatService } from './ai-help.ts'
import { createKey } from './api-keys-help.ts'
import { createPeopleMaker, type Person } from './orgs-help.ts'
import { createFolder, startIndexer, writeFiles } from './rag-help.ts'

const root = createFolder()
const env = { RAG_ROOT: root, RAG_EMBEDDINGS: 'lexical', OPEN_AREAS: 'ai,jobs,rag' }
const { models, api, url, query } = await startChatService(env)
await startIndexer(url, env)
writeFiles(root, {
  'facts/tides.md': '# Tides\n\nThe harbour closes two hours before low tide.\n',
  'facts/bread.txt': 'The bakery opens at five.\n',
})
const indexAnswer = await api.post('/rag/index', { json: { path: 'facts', collection_name: 'facts' } })
assert.equal(indexAnswer.status, 200, indexAnswer.text)
models.script = () => ({ pieces: ['Two hours before.'] })
const RAG_QUESTION = { message: 'When does the harbour close?', rag_collection: 'facts' }
const formatLastModelRequest = (): string => JSON.stringify(models.asked.at(-1))

describe('a chat with a collection', () => {
  test('sends the search results to the model and lists them', async () => {
    const answer = await api.post(CHAT_PATH, { json: RAG_QUESTION })
    assert.equal(answer.status, 200, answer.text)
    const [source, ...others] = answer.json.rag_sources
    assert.deepEqual(others, [])
    assert.equal(source.rank, 1)
    assert.match(source.content, /two hours before low tide/)
    assert.equal(source.metadata.source, 'facts/tides.md')
    assert.match(formatLastModelRequest(), /\[1\] facts\/tides\.md, lines 1 to 3/)
    assert.match(formatLastModelRequest(), /harbour closes two hours before low tide/)
  })

  test('both kinds of stream list the results in the final frame', async () => {
    const query = new URLSearchParams({ ...RAG_QUESTION, rag_top_k: '1' })
    for (const stream of [
      await postStream(api, { ...RAG_QUESTION, rag_top_k: 1 }),
      await openStream(api, `${CHAT_PATH}/stream?${query}`),
    ]) {
      const frames = await stream.waitForEnd()
      const final = frames.find(({ event }) => event === 'final')!
      const sources = final.data.rag_sources as { metadata: { file_name: string } }[]
      assert.deepEqual(
        sources.map(({ metadata }) => metadata.file_name),
        ['tides.md'],
      )
      const path = `/api/v1/ai/conversations/${final.data.conversation_id}`
      const { messages } = (await api.get(path)).json
      assert.deepEqual([messages[0].rag_sources, messages[1].rag_sources], [null, sources])
    }
  })

  test('reports an empty search, and nothing if no search was requested', async () => {
    const none = await api.post(CHAT_PATH, { json: { ...RAG_QUESTION, message: 'Zebras?' } })
    assert.deepEqual(none.json.rag_sources, [])
    assert.match(formatLastModelRequest(), /Nothing was found on this in the collection facts/)
    const plain = await api.post(CHAT_PATH, { json: { message: 'Hello?' } })
    assert.equal('rag_sources' in plain.json, false)
    assert.doesNotMatch(formatLastModelRequest(), /excerpts/)
  })

  const PETS = '## Pets\n\n| Kind | Status |\n| --- | --- |\n| Cats | allowed |'

  test('cites document and page to callers who may see them', async () => {
    const [owner, other] = (await createPeopleMaker(api, query)(2)) as [Person, Person]
    const { token } = owner
    const { id } = (await api.upload(token, 'bytes', { fields: { title: 'The lease' } })).json
    await query(
      `insert into document_page (document_id, page_number, status, method, text, markdown, job_id)
       select $1, n, 'read', 'text_layer', page, markdown, gen_random_uuid()
       from unnest(array['About the house.', 'Pets\nCats\tallowed'], array[null, $2]) with ordinality p(page, markdown, n)`,
      [id, PETS],
    )
    const documents = { json: { documents: { ids: [id] }, collection_name: 'lease' }, token }
    assert.equal((await api.post('/rag/index', documents)).status, 200)
    const json = { message: 'Are cats allowed?', rag_collection: 'lease' }
    const answer = await api.post(CHAT_PATH, { json, token })
    assert.equal(answer.status, 200, answer.text)
    const [{ metadata }] = answer.json.rag_sources
    assert.deepEqual([metadata.document_id, metadata.file_name, metadata.page], [id, 'The lease', 2])
    assert.equal(metadata.heading, 'Pets')
    assert.ok(
      formatLastModelRequest().includes(
        JSON.stringify(`[1] The lease (document ${id}), page 2\n${PETS}`).slice(1, -1),
      ),
      formatLastModelRequest(),
    )
    for (const options of [{ json }, { json, token: other.token }])
      assert.deepEqual((await api.post(CHAT_PATH, options)).json, {
        detail: 'Collection not found',
        code: 'rag.missing',
      })
  })

  test('accepts only API keys that may read collections', async () => {
    const [owner] = (await createPeopleMaker(api, query)(1)) as [Person]
    const keyed = async (...scopes: readonly string[]): Promise<string> =>
      (await createKey(api, owner, { scopes })).key
    const token = await keyed('ai:write')
    const refusal = { detail: 'The API key lacks the scope rag:read', code: 'auth.scope' }
    for (const answer of [
      await api.post(CHAT_PATH, { json: RAG_QUESTION, token }),
      await api.post(`${CHAT_PATH}/stream`, { json: RAG_QUESTION, token }),
      await api.get(`${CHAT_PATH}/stream?${new URLSearchParams(RAG_QUESTION)}`, { token }),
    ])
      assert.deepEqual([answer.status, answer.json], [403, refusal])
    assert.equal((await api.post(CHAT_PATH, { json: { message: 'Hello?' }, token })).status, 200)
    const both = await api.post(CHAT_PATH, { json: RAG_QUESTION, token: await keyed('ai:write', 'rag:read') })
    assert.equal(both.json.rag_sources.length, 1)
  })

  test('rejects unknown collections and numbers out of range', async () => {
    for (const path of [CHAT_PATH, `${CHAT_PATH}/stream`]) {
      const missing = await api.post(path, { json: { ...RAG_QUESTION, rag_collection: 'none' } })
      assert.equal(missing.status, 404)
      assert.deepEqual(missing.json, { detail: 'Collection not found', code: 'rag.missing' })
      for (const rag_top_k of [0, 51, 1.5])
        assert.equal((await api.post(path, { json: { ...RAG_QUESTION, rag_top_k } })).status, 400)
      assert.equal((await api.post(path, { json: { ...RAG_QUESTION, rag_collection: 'a/b' } })).status, 400)
    }
  })
})
