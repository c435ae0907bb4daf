import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import PostalMime from 'postal-mime'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { makeDue, startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { type Account, startEdge, startEdgeAndDatabase } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** Attached documents must exist, belong to the caller, and fit the size limit of a mail server. */

const MAX_BYTES = 100_000
const standIns = await startProviderStandIns()
const { mail } = standIns
const env = {
  ...standIns.env,
  OPEN_AREAS: 'ai',
  AUTH_LEVEL: 'basic',
  EMAIL_ATTACHMENTS_MAX_BYTES: String(MAX_BYTES),
}
const { api, url, query } = await startEdgeAndDatabase({ env })
const openEdge = await startEdge(url, { env: { ...env, OPEN_AREAS: 'comms' } })
const noAuthEdge = await startEdge(url, { env: { ...env, AUTH_LEVEL: 'none' } })
// An edge with a higher attachment limit than the workers.
const generousEdge = await startEdge(url, {
  env: { ...env, EMAIL_ATTACHMENTS_MAX_BYTES: String(MAX_BYTES * 10) },
})
await startMessageWorker(url, env)
const { admin, user, newcomer } = await createCast(api)
const otherAccount = await newcomer()

const MAIL_BODY = { to: ['a@example.com'], subject: 's', text: 't' }
interface Attachment {
  readonly document_id: unknown
  readonly filename?: unknown
}
const send = (
  attachments: readonly Attachment[],
  more: object = {},
  token: string = user.token,
  headers = {},
) => api.post('/api/v1/comms/email/send', { token, headers, json: { ...MAIL_BODY, attachments, ...more } })
const readMessage = async (id: string) =>
  (await api.get(`/api/v1/comms/sends/${id}`, { token: user.token })).json
const uploadDocument = async (
  bytes: Uint8Array | string,
  name = 'file.txt',
  by: Account = user,
): Promise<number> => {
  const answer = await api.upload(by.token, bytes, { name })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}
const createDocument = (by: Account = user) => uploadDocument(`document ${randomUUID()}`, 'file.txt', by)
const remove = (id: number, search = '') =>
  api.call('DELETE', `/api/v1/documents/${id}${search}`, { token: user.token })
const countRows = () =>
  query('select (select count(*) from comms_send) as sends, (select count(*) from job) as jobs')
const inOneHour = (): string => new Date(Date.now() + 3_600_000).toISOString()
const missingDetailOf = (...ids: number[]): string =>
  `The attached documents do not exist or were deleted: ${ids.join(', ')}`

describe('documents attached to mail', () => {
  test('arrive unchanged under the given name or their title, and the message lists them', async () => {
    const bytes = randomBytes(60_000)
    const [picture, text] = [
      await uploadDocument(bytes, 'Grüße/../x.bin'),
      await uploadDocument('Hello', 'hello.txt'),
    ]
    const answer = await send([
      { document_id: picture },
      { document_id: text, filename: 'Rechnung №1.txt' },
      { document_id: text },
    ])
    assert.equal(answer.status, 200, answer.text)
    const { attachments } = await PostalMime.parse(mail.raw.at(-1)!)
    const names = attachments.map(({ filename }) => filename)
    assert.deepEqual(names.slice(1), ['Rechnung №1.txt', 'hello.txt'])
    assert.doesNotMatch(names[0]!, /[/\\]/)
    assert.ok(Buffer.from(attachments[0]!.content as ArrayBuffer).equals(bytes))
    assert.equal(Buffer.from(attachments[1]!.content as ArrayBuffer).toString(), 'Hello')
    const row = await readMessage(answer.json.id)
    assert.deepEqual(row.attachments.slice(1), [
      { document_id: text, filename: 'Rechnung №1.txt', media_type: 'text/plain', byte_size: 5 },
      { document_id: text, filename: 'hello.txt', media_type: 'text/plain', byte_size: 5 },
    ])
    const [job] = await query('select payload from job where id = $1', [row.job_id])
    assert.deepEqual(job!.payload, { send_id: answer.json.id }, 'the job has none of it')
  })

  test('can be sent without authentication, if they have no owner', async () => {
    const answer = await noAuthEdge.upload('', 'of nobody', { name: 'x.txt' })
    const sent = await noAuthEdge.post('/api/v1/comms/email/send', {
      json: { ...MAIL_BODY, attachments: [{ document_id: answer.json.id }] },
    })
    assert.equal(sent.status, 200, sent.text)
  })

  test('may total exactly the size limit, but no more', async () => {
    const half = await uploadDocument(randomBytes(MAX_BYTES / 2))
    const [rest, one] = [await uploadDocument(randomBytes(MAX_BYTES / 2)), await uploadDocument('x')]
    assert.equal((await send([{ document_id: half }, { document_id: rest }])).status, 200)
    const before = await countRows()
    const detail = `The attachments total ${MAX_BYTES + 1} bytes; the limit per email is ${MAX_BYTES}`
    assertRefused(await send([half, rest, one].map((document_id) => ({ document_id }))), 413, detail)
    assertRefused(
      await send([half, half, half].map((document_id) => ({ document_id }))),
      413,
      detail.replace(String(MAX_BYTES + 1), String((MAX_BYTES / 2) * 3)),
    )
    assert.deepEqual(await countRows(), before)
  })

  test('count as part of the request under an idempotency key', async () => {
    const [one, two] = [await createDocument(), await createDocument()]
    const headers = { 'idempotency-key': randomUUID() }
    const first = await send([{ document_id: one }], {}, user.token, headers)
    assert.equal(first.status, 200)
    assert.equal((await send([{ document_id: one }], {}, user.token, headers)).text, first.text)
    const detail = 'This Idempotency-Key was already used with a different request'
    assertRefused(await send([{ document_id: two }], {}, user.token, headers), 422, detail)
    assertRefused(await send([], {}, user.token, headers), 422, detail)
  })
})

describe('mail is rejected and not stored, with', () => {
  const cases: readonly [string, () => Promise<readonly Attachment[]>, number, (string | RegExp)?][] = [
    [
      'a document that there is not',
      async () => [{ document_id: 999_999_999 }],
      404,
      missingDetailOf(999_999_999),
    ],
    ['a number that no document has', async () => [{ document_id: Number.MAX_SAFE_INTEGER }], 404],
    [
      'a document of another account',
      async () => [{ document_id: await createDocument(otherAccount) }],
      404,
      /^The attached documents/,
    ],
    ['one of an admin', async () => [{ document_id: await createDocument(admin) }], 404],
    [
      'one in the trash',
      async () => {
        const id = await createDocument()
        await remove(id)
        return [{ document_id: await createDocument() }, { document_id: id }]
      },
      404,
    ],
    [
      'one that is deleted',
      async () => {
        const id = await createDocument()
        await remove(id, '?permanent=true')
        return [{ document_id: id }]
      },
      404,
    ],
    ['21 of them', async () => Array.from({ length: 21 }, () => ({ document_id: 1 })), 422],
    ['1,000 of them', async () => Array.from({ length: 1000 }, (_, n) => ({ document_id: n + 1 })), 422],
    ['an id that is none', async () => [{ document_id: '1; drop table document' }], 422],
    ['an id of 0', async () => [{ document_id: 0 }], 422],
    ['a fraction', async () => [{ document_id: 1.5 }], 422],
    [
      'a name that adds a header',
      async () => [{ document_id: await createDocument(), filename: 'a\r\nBcc: x@example.com' }],
      422,
    ],
    [
      'a name that is a path',
      async () => [{ document_id: await createDocument(), filename: '../../etc/passwd' }],
      422,
    ],
    ['an empty name', async () => [{ document_id: await createDocument(), filename: '' }], 422],
    ['a long name', async () => [{ document_id: await createDocument(), filename: 'x'.repeat(256) }], 422],
    [
      'a path in place of a document',
      async () => [{ document_id: 1, path: '/etc/passwd' } as Attachment],
      422,
    ],
  ]
  for (const [what, make, status, detail] of cases)
    test(what, async () => {
      const attachments = await make()
      const before = await countRows()
      assertRefused(await send(attachments), status, detail)
      assert.deepEqual(await countRows(), before)
    })

  test('control characters are removed from a title used as a file name', async () => {
    const id = await createDocument()
    await query('update document set title = $1 where id = $2', ['a\r\nX-Evil: 1/\\..', id])
    const answer = await send([{ document_id: id }])
    assert.equal(answer.status, 200)
    assert.equal((await readMessage(answer.json.id)).attachments[0].filename, 'a__X-Evil: 1__...txt')
    assert.doesNotMatch(mail.raw.at(-1)!, /^X-Evil/m)
  })

  test('attachments of an anonymous caller, who has no documents', async () => {
    const answer = await noAuthEdge.upload('', `of nobody ${randomUUID()}`, { name: 'x.txt' })
    const json = { ...MAIL_BODY, attachments: [{ document_id: answer.json.id }] }
    assertRefused(await openEdge.post('/api/v1/comms/email/send', { json }), 401, 'Not authenticated')
    assert.equal((await openEdge.post('/api/v1/comms/email/send', { json: MAIL_BODY })).status, 200)
  })

  test('attachments for an API key that may not read documents', async () => {
    const attachments = [{ document_id: await createDocument() }]
    const with_ = async (...scopes: string[]) => (await createKey(api, user, { scopes })).key
    const narrow = await with_('comms:write', 'jobs:read')
    assertRefused(await send(attachments, {}, narrow), 403, 'The API key lacks the scope documents:read')
    assert.equal((await send([], {}, narrow)).status, 200)
    for (const scope of ['documents:read', 'documents:write', '*:read'])
      assert.equal((await send(attachments, {}, await with_('comms:write', scope))).status, 200, scope)
  })
})

describe('changes to a document before its mail is sent', () => {
  const failed = (id: string) =>
    until('the message has failed', async () => {
      const row = await readMessage(id)
      assert.notEqual(row.status, 'sent')
      return row.status === 'failed' && row
    })

  for (const search of ['', '?permanent=true'])
    test(`a deleted one${search} fails the mail`, async () => {
      const [kept, gone] = [await createDocument(), await createDocument()]
      const attachments = [{ document_id: kept }, { document_id: gone }]
      const { id } = (await send(attachments, { send_at: inOneHour() })).json
      assert.equal((await remove(gone, search)).status, 204)
      await makeDue(query, id)
      const row = await failed(id)
      assert.equal(row.detail, missingDetailOf(gone))
      assert.deepEqual([row.requests, row.attachments.length], [0, 2])
      const job = await until('the job has failed, too', async () => {
        const [job] = await query('select status, error_code, attempt from job where id = $1', [row.job_id])
        return job!.status === 'failed' && job
      })
      assert.deepEqual(job, { status: 'failed', error_code: 'email.attachments_missing', attempt: 1 })
      assert.ok(!mail.taken.some((taken) => taken.includes(id)))
    })

  test('one restored in time is sent', async () => {
    const document_id = await createDocument()
    const { id } = (await send([{ document_id }], { send_at: inOneHour() })).json
    await remove(document_id)
    assert.equal(
      (await api.post(`/api/v1/documents/${document_id}/restore`, { token: user.token })).status,
      200,
    )
    await makeDue(query, id)
    await until('the mail is sent', async () => (await readMessage(id)).status === 'sent')
  })

  test('the size limit of the sending worker applies', async () => {
    const document_id = await uploadDocument(randomBytes(MAX_BYTES + 1))
    const answer = await generousEdge.post('/api/v1/comms/email/send', {
      token: user.token,
      json: { ...MAIL_BODY, attachments: [{ document_id }] },
    })
    assertRefused(answer, 413, /the limit per email is 100000/)
  })

  test('lost bytes fail the mail', async () => {
    const document_id = await createDocument()
    const { id } = (await send([{ document_id }], { send_at: inOneHour() })).json
    await query(`delete from blob_chunk where blob_id = (select b.id from blob b join document d on d.sha256 = b.sha256
      where d.id = ${document_id})`)
    await makeDue(query, id)
    assert.equal((await failed(id)).detail, 'The document is missing from storage')
  })
})
