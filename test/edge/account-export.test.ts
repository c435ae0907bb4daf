import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { insertExport } from '../../sql/accounts/exports.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { sealUpload } from '../../tasks/documents/store.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { type Account, createEmail, getSharedEdge, startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** Tests the export routes. test/tasks/account-export.test.ts covers the content of exports. */

const { api, db, url, query, admin } = await getSharedEdge()
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const blobs = createBlobs(db, parseSettings({}))
const PATH = '/api/v1/auth/me/export'
const EXPORT_MISSING = 'Export not found or expired'
const registerAccount = (): Promise<Account> => api.register(createEmail('keeper'))
const requestExport = (who: Pick<Account, 'token'>, headers = {}) =>
  api.post(`${PATH}?background=true`, { token: who.token, headers })
const list = async (who: Account) => (await api.get(PATH, { token: who.token })).json
const get = (who: Pick<Account, 'token'>, id: string, headers = {}, method = 'GET') =>
  api.call(method, `${PATH}/${id}`, { token: who.token, headers })

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Inserts an export that finished `days` ago. */
async function addExport(accountId: number, days = 0, bytes = randomBytes(70_000)) {
  const id = uuidv7()
  const blob = await blobs.store(only(bytes))
  await db.transaction(async (tx) => {
    await sealUpload(tx, blob, null)
    await tx.run(insertExport({ id, accountId, sha256: blob.sha256, byteSize: blob.byteSize }))
  })
  await query(`update account_export set created_at = created_at - make_interval(days => $2) where id = $1`, [
    id,
    days,
  ])
  return { id, bytes }
}

describe('POST /auth/me/export', () => {
  test('adds a job of the account; another request joins it', async () => {
    const who = await registerAccount()
    const answer = await requestExport(who)
    assert.equal(answer.status, 202)
    const { job_id } = answer.json
    assert.equal(answer.headers.location, `/api/v1/jobs/${job_id}`)
    const others = await Promise.all([requestExport(who), requestExport(who), requestExport(who)])
    for (const { status, json } of others) assert.deepEqual([status, json], [202, { job_id }])
    const jobs = await query(
      `select id, owner_id, queue, payload from job where name = 'accounts.export' and owner_id = $1`,
      [who.id],
    )
    assert.deepEqual(jobs, [
      { id: job_id, owner_id: who.id, queue: 'accounts', payload: { account_id: who.id } },
    ])
    assert.equal((await api.get(`/api/v1/jobs/${job_id}`, { token: who.token })).json.status, 'queued')
    const stranger = await registerAccount()
    assertRefused(await api.get(`/api/v1/jobs/${job_id}`, { token: stranger.token }), 404)
    assert.notEqual((await requestExport(stranger)).json.job_id, job_id)
  })

  test('the job can be cancelled like any other', async () => {
    const who = await registerAccount()
    const { job_id } = (await requestExport(who)).json
    const answer = await api.call('DELETE', `/api/v1/jobs/${job_id}`, { token: who.token })
    assert.ok(answer.status < 300, answer.text)
    assert.equal((await api.get(`/api/v1/jobs/${job_id}`, { token: who.token })).json.status, 'cancelled')
    assert.notEqual((await requestExport(who)).json.job_id, job_id)
  })

  test('is limited per account, except for admins', async () => {
    const who = await registerAccount()
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) statuses.push((await requestExport(who)).status)
    assert.deepEqual(statuses, [...Array(5).fill(202), 429])
    const refused = await requestExport(who)
    assert.ok(Number(refused.headers['retry-after']) > 80_000)
    assert.equal(
      (await requestExport(await registerAccount())).status,
      202,
      'others of the same address are not held up',
    )
    for (let i = 0; i < 7; i++) assert.equal((await requestExport(admin)).status, 202)
  })

  test('takes effect once per Idempotency-Key', async () => {
    const who = await registerAccount()
    const key = { 'idempotency-key': 'export' }
    const answers = [await requestExport(who, key), await requestExport(who, key)]
    assert.deepEqual([answers[1]!.status, answers[1]!.json], [202, answers[0]!.json])
  })

  test('rejects API keys and requests without a credential', async () => {
    const who = await registerAccount()
    const { id } = await addExport(who.id)
    const key = await api.post('/api/v1/auth/keys', {
      token: who.token,
      json: { name: 'k', scopes: ['*:write'] },
    })
    const program = { token: key.json.key }
    for (const call of [requestExport(program), get(program, id), api.get(PATH, program)])
      assertRefused(await call, 403, 'API keys may not do this; sign in instead')
    for (const call of [requestExport({ token: '' }), get({ token: '' }, id), api.get(PATH)])
      assertRefused(await call, 401)
    assertRefused(await noAuthEdge.post(PATH), 404, 'User not found')
    assert.deepEqual((await noAuthEdge.get(PATH)).json, [])
    assertRefused(await noAuthEdge.get(`${PATH}/${id}`), 404, EXPORT_MISSING)
  })
})

describe('a finished export', () => {
  test('is listed and can be downloaded completely or by range', async () => {
    const who = await registerAccount()
    const [first, second] = [await addExport(who.id), await addExport(who.id)]
    const found = await list(who)
    assert.deepEqual(
      found.map(({ id, byte_size }: { id: string; byte_size: number }) => [id, byte_size]),
      [second, first].map(({ id }) => [id, 70_000]),
    )
    assert.equal(Date.parse(found[0].expires_at) - Date.parse(found[0].created_at), 7 * 86_400_000)
    const answer = await get(who, first.id)
    assert.equal(answer.status, 200)
    assert.equal(Buffer.compare(answer.bytes, first.bytes), 0)
    const { headers } = answer
    assert.deepEqual(
      [
        headers['content-type'],
        headers['content-length'],
        headers['x-content-type-options'],
        headers['cache-control'],
      ],
      ['application/zip', '70000', 'nosniff', 'private, no-cache'],
    )
    assert.match(headers['content-disposition']!, /^attachment; filename="account-\d{4}-\d\d-\d\d\.zip"$/)
    const part = await get(who, first.id, { range: 'bytes=69990-' })
    assert.deepEqual([part.status, part.bytes], [206, first.bytes.subarray(69_990)])
    assert.equal((await get(who, first.id, { range: 'bytes=70000-' })).status, 416)
    assert.equal((await get(who, first.id, { 'if-none-match': headers.etag! })).status, 304)
    const head = await get(who, first.id, {}, 'HEAD')
    assert.deepEqual([head.status, head.bytes.length, head.headers['content-length']], [200, 0, '70000'])
    const page = await api.get(`${PATH}?limit=1`, { token: who.token })
    assert.equal(page.json.length, 1)
    assert.match(String(page.headers.link), /rel="next"/)
  })

  test('of another account gets the same 404 as a missing one', async () => {
    const [who, other] = [await registerAccount(), await registerAccount()]
    const { id } = await addExport(who.id)
    const answers = [await get(other, id), await get(other, uuidv7())]
    for (const answer of answers) assertRefused(answer, 404, EXPORT_MISSING)
    for (const bad of ['x', '1', `${id}0`, "'or'1'='1"])
      assertRefused(await get(who, bad), 404, EXPORT_MISSING)
    assert.deepEqual(await list(other), [])
  })

  test('is unavailable after its retention period, even before pruning', async () => {
    const who = await registerAccount()
    const [old, young] = [await addExport(who.id, 7), await addExport(who.id, 6)]
    assertRefused(await get(who, old.id), 404, EXPORT_MISSING)
    assert.equal((await get(who, young.id)).status, 200)
    assert.deepEqual(
      (await list(who)).map(({ id }: { id: string }) => id),
      [young.id],
    )
    const forever = await startEdge(url, { env: { EXPORTS_KEEP_DAYS: '0' } })
    assert.equal((await forever.get(`${PATH}/${old.id}`, { token: who.token })).status, 200)
    const all = (await forever.get(PATH, { token: who.token })).json
    assert.deepEqual(
      all.map(({ expires_at }: { expires_at: string | null }) => expires_at),
      [null, null],
    )
  })

  test('without its stored bytes is 502', async () => {
    const who = await registerAccount()
    const { id, bytes } = await addExport(who.id)
    const digest = createHash('sha256').update(bytes).digest()
    await query('delete from blob_chunk where blob_id = (select id from blob where sha256 = $1)', [digest])
    assertRefused(await get(who, id), 502)
    await query('delete from blob where sha256 = $1', [digest])
    assertRefused(await get(who, id), 502)
  })

  test('of a deleted account is unavailable to everyone', async () => {
    const who = await registerAccount()
    const { id } = await addExport(who.id)
    const deleted = await api.call('DELETE', `/api/v1/auth/users/${who.id}`, { token: admin.token })
    assert.equal(deleted.status, 204)
    assertRefused(await get(who, id), 401)
    assertRefused(await get(admin, id), 404)
  })
})
