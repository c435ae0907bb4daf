import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { createKey } from './api-keys-help.ts'
import { startEdge } from './harness.ts'
import {
  assertRefusal,
  createRecording,
  createUpload,
  PATH,
  send,
  startTranscribing,
} from './transcriptions-help.ts'

/** Rejected transcriptions must neither reach the provider nor leave any data behind. */

const { server, env, api, query, url, admin, newcomer } = await startTranscribing()
const user = await newcomer()
const { token } = user

const post = (json: unknown, who = token) => api.post(PATH, { token: who, json })
const uploadDocument = async (bytes: string | Uint8Array, who = token): Promise<number> =>
  (await api.upload(who, bytes)).json.id
const ownDocument = await uploadDocument(createRecording())
const MISSING_ID = '01a20118-fb9f-7aa1-9d1c-0a3c51b27b1e'

const countEffects = async () => ({
  asked: server.asked.length,
  ...(
    await query(`select (select count(*) from voice_transcription)::int as made,
      (select count(*) from job where name = 'voice.transcribe')::int as jobs, (select count(*) from blob where sha256 is null)::int as blobs,
      (select count(*) from document where kind = 'audio')::int as documents`)
  )[0],
})
let before: object
beforeEach(async () => {
  before = await countEffects()
})
afterEach(async () => {
  assert.deepEqual(await countEffects(), before)
})

describe('rejects a file', () => {
  test('without bytes', async () => {
    assertRefusal(await send(api, token, ''), 400, 'The file is empty')
  })

  test('with an unknown field', async () => {
    const { body, headers } = createUpload(createRecording(), { temperature: '0' } as never)
    const answer = await api.post(PATH, { token, body, headers })
    assertRefusal(answer, 422, 'body: has no temperature; its fields are file, model, language, prompt')
  })

  test('that is not a recording, whatever its name and type', async () => {
    const page = '<!doctype html><script>alert(1)</script>'
    for (const [bytes, type] of [
      ['ID3 is how this text begins', 'text/plain'],
      [page, 'text/html'],
      [Buffer.from([1, 2, 3, 0, 255]), 'application/octet-stream'],
      [Buffer.from('%PDF-1.7\n'), 'application/pdf'],
    ] as const) {
      const { body, headers } = createUpload(bytes, {}, 'call.mp3')
      const named = Buffer.from(
        body.toString('latin1').replace('application/octet-stream', 'audio/mpeg'),
        'latin1',
      )
      assertRefusal(
        await api.post(PATH, { token, body: named, headers }),
        400,
        new RegExp(`^A file of type ${type} cannot`),
      )
      assertRefusal(
        await post({ document_id: await uploadDocument(bytes) }),
        400,
        new RegExp(`^A file of type ${type} cannot`),
      )
    }
  })

  test('over the upload limit', async () => {
    const small = await startEdge(url, { env: { ...env, MAX_UPLOAD_BYTES: '1000' } })
    assertRefusal(
      await send(small, token, createRecording()),
      413,
      'The body is larger than the limit of 1000 bytes',
    )
  })

  test('that is missing or truncated', async () => {
    const { body, headers } = createUpload(createRecording())
    const other = Buffer.from(body.toString('latin1').replace('name="file"', 'name="audio"'), 'latin1')
    assertRefusal(
      await api.post(PATH, { token, body: other, headers }),
      422,
      /has no audio; its fields are file/,
    )
    const text = Buffer.from('--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n')
    const form = { 'content-type': 'multipart/form-data; boundary=b' }
    assertRefusal(await api.post(PATH, { token, body: text, headers: form }), 422, /"file"/)
    const cut = await api.post(PATH, { token, body: body.subarray(0, 2000), headers })
    assert.equal(cut.status, 400, cut.text)
  })
})

describe('rejects a document', () => {
  test('of another owner, even for admins, or that is missing', async () => {
    const { token: other } = await newcomer()
    for (const who of [other, admin.token])
      assertRefusal(await post({ document_id: ownDocument }, who), 404, 'Document not found')
    assertRefusal(await post({ document_id: 9_000_000_000 }), 404, 'Document not found')
  })

  test('in the trash', async () => {
    const id = await uploadDocument(createRecording())
    await api.call('DELETE', `/api/v1/documents/${id}`, { token })
    assertRefusal(await post({ document_id: id }), 404, 'Document not found')
  })

  test('without its stored bytes', async () => {
    const id = await uploadDocument(createRecording())
    await query('delete from blob where sha256 = (select sha256 from document where id = $1)', [id])
    assertRefusal(await post({ document_id: id }), 502, 'The document is missing from storage')
  })
})

describe('rejects a request', () => {
  test('with invalid values', async () => {
    for (const [field, value] of [
      ['language', 'xx<script>'],
      ['language', 'English'],
      ['language', 'english'],
      ['language', 'en_US'],
      ['language', 'en-'],
      ['language', 'und'],
      ['prompt', 'x'.repeat(4001)],
      ['prompt', 'a\0b'],
      ['model', 'x'.repeat(101)],
    ] as const) {
      const answers = [
        await post({ document_id: ownDocument, [field]: value }),
        await send(api, token, createRecording(), { [field]: value }),
      ]
      for (const answer of answers) {
        assert.equal(answer.status, 422, `${field} ${value.slice(0, 20)}: ${answer.text}`)
        assert.deepEqual(answer.json.errors[0].loc, ['body', field])
      }
    }
    for (const json of [
      {},
      { document_id: 0 },
      { document_id: '1' },
      { document_id: ownDocument, file: 'x' },
      [],
      'x',
      null,
    ])
      assert.equal((await post(json)).status, 422, JSON.stringify(json))
  })

  test('with a prompt of a megabyte', async () => {
    const prompt = 'x'.repeat(1024 * 1024)
    assert.equal((await post({ document_id: ownDocument, prompt })).status, 413)
    assert.equal((await send(api, token, createRecording(), { prompt })).status, 413)
  })

  test('for an unknown model, or a prompt with a model that has none', async () => {
    for (const model of ['gpt-4o', '__proto__'])
      assertRefusal(
        await post({ document_id: ownDocument, model }),
        400,
        new RegExp(`^model cannot be ${model}; it must be one of gpt-transcribe, `),
      )
    for (const model of ['gpt-4o-transcribe-diarize', 'voxtral-mini-latest']) {
      assertRefusal(
        await post({ document_id: ownDocument, model, prompt: 'x' }),
        400,
        `The model ${model} does not accept a prompt`,
      )
      assertRefusal(
        await send(api, token, createRecording(), { model, prompt: 'x' }),
        400,
        `The model ${model} does not accept a prompt`,
      )
    }
  })

  test('for a provider without a key', async () => {
    assertRefusal(
      await post({ document_id: ownDocument, model: 'whisper-large-v3' }),
      503,
      /Set GROQ_API_KEY environment variable/,
    )
    const bare = await startEdge(url, { env: { NODE_ENV: 'test' } })
    assertRefusal(await send(bare, token, createRecording()), 503, /Set OPENAI_API_KEY environment variable/)
  })

  test('in another format', async () => {
    const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/mixed', 'application/jsonx']
    for (const type of types) {
      const answer = await api.post(PATH, { token, body: 'x', headers: { 'content-type': type } })
      assertRefusal(answer, 415, 'Content-Type must be multipart/form-data or application/json')
    }
    const broken = await api.post(PATH, { token, body: '{', headers: { 'content-type': 'application/json' } })
    assert.equal(broken.status, 400)
    assert.equal((await api.post(PATH, { token })).status, 422)
  })

  test('with a callback, but not in the background', async () => {
    const callback = encodeURIComponent('https://example.com/')
    assert.equal((await send(api, token, createRecording(), {}, `?callback_url=${callback}`)).status, 422)
    assert.equal((await send(api, token, createRecording(), {}, '?background=perhaps')).status, 422)
  })
})

describe('rejects callers without', () => {
  test('an account, even where the area is open', async () => {
    const open = await startEdge(url, { env: { ...env, OPEN_AREAS: 'voice' } })
    for (const edge of [api, open]) {
      assert.equal((await edge.post(PATH, createUpload(createRecording()))).status, 401)
      for (const [method, path] of [
        ['GET', PATH],
        ['GET', `${PATH}/${MISSING_ID}`],
        ['DELETE', `${PATH}/${MISSING_ID}`],
      ] as const)
        assert.equal((await edge.call(method, path)).status, 401)
    }
  })

  test('the scopes of an API key', async () => {
    const keyFor = async (...scopes: string[]): Promise<string> =>
      (await createKey(api, user, { scopes })).key
    const bare = { document_id: ownDocument, model: 'none' }
    for (const [scopes, named, uploaded] of [
      [['documents:write'], 'voice:write', 'voice:write'],
      [['voice:read', 'documents:write'], 'voice:write', 'voice:write'],
      [['voice:write'], 'documents:read', 'documents:write'],
      [['voice:write', 'documents:read'], null, 'documents:write'],
      [['voice:write', 'documents:write'], null, null],
      [['*:write'], null, null],
    ] as const) {
      const key = await keyFor(...scopes)
      const found = [
        [await post(bare, key), named],
        [await send(api, key, createRecording(), { model: 'none' }), uploaded],
      ] as const
      for (const [answer, scope] of found)
        if (scope === null) assertRefusal(answer, 400, /^model cannot be none/)
        else assertRefusal(answer, 403, new RegExp(scope))
    }
    const reading = await keyFor('voice:read')
    assert.equal((await api.get(PATH, { token: reading })).status, 200)
    assert.equal((await api.call('DELETE', `${PATH}/${MISSING_ID}`, { token: reading })).status, 403)
  })
})

test('returns 404 for a missing transcription', async () => {
  for (const id of [MISSING_ID, MISSING_ID.toUpperCase()])
    for (const method of ['GET', 'DELETE'])
      assertRefusal(await api.call(method, `${PATH}/${id}`, { token }), 404, 'Transcription not found')
  assert.equal((await api.get(`${PATH}/7`, { token })).status, 422)
  assert.equal((await api.get(`${PATH}?cursor=x`, { token })).status, 422)
  assert.equal((await api.get(`${PATH}?limit=201`, { token })).status, 422)
})

test('rejects a recording beyond a budget of the account or of the API key', async () => {
  const account = await newcomer()
  const budgeted = await startEdge(url, { env: { ...env, AI_BUDGET_MONTH_COST: '0.01' } })
  await query(
    `insert into ai_usage (user_id, owner_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success)
    values ($1::text, $1::int, 'transcription', 'openai', 'whisper-1', 0, 0, 0.01, false, true)`,
    [account.id],
  )
  const refused = await send(budgeted, account.token, createRecording())
  assert.deepEqual([refused.status, refused.json.code], [429, 'quota.ai_budget'], refused.text)
  assert.equal(refused.json.budget.left, 0)
  const { key, id } = await createKey(api, account, { scopes: ['*:write'], budget: { day_cost: 0.001 } })
  await query(
    `insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success)
    values ($1::text, $1::int, $2, 'transcription', 'openai', 'whisper-1', 0, 0, 0.01, false, true)`,
    [account.id, id],
  )
  assert.equal((await send(api, key, createRecording())).json.code, 'quota.ai_key_budget')
})
