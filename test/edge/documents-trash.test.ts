import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { lockDigest } from '../../sql/documents/blobs.ts'
import { insertDocument } from '../../sql/documents/documents.ts'
import { until } from '../until.ts'
import { createEmail, createMultipart, getSharedEdge, startEdge } from './harness.ts'

/** Deleted documents can be restored for a while, except after permanent deletion. */

const { api, url, db, query } = await getSharedEdge()
const noTrashEdge = await startEdge(url, { env: { TRASH_DAYS: '0' } })
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const PATH = '/api/v1/documents'
const DOCUMENT_MISSING = [404, { detail: 'Document not found', code: 'document.missing' }]
const registerAccount = async (): Promise<string> => (await api.register(createEmail())).token
const owner = await registerAccount()
let count = 0
const add = async (token = owner, fields: Record<string, string> = {}): Promise<number> =>
  (await api.upload(token, `Text number ${++count}`, { fields })).json.id
const documentPath = (id: number | string, rest = ''): string => `${PATH}/${id}${rest}`
const get = (path: string, token = owner) => api.get(path, { token })
const remove = (id: number, rest = '', token = owner) => api.call('DELETE', documentPath(id, rest), { token })
const deletePermanently = (id: number, token = owner) => remove(id, '?permanent=true', token)
const restore = (id: number | string, token = owner) => api.post(documentPath(id, '/restore'), { token })
const patch = (id: number, json: unknown) => api.call('PATCH', documentPath(id), { token: owner, json })
const expire = (id: number) => query('update document set expires_at = now() where id = $1', [id])

interface Trashed {
  readonly id: number
  readonly deleted_at: string
  readonly expires_at: string
}
interface Listed {
  readonly items: readonly Trashed[]
  readonly total: number
  readonly next: string | null
}
async function listTrash(token = owner, more = ''): Promise<Listed> {
  const answer = await get(`${PATH}?trashed=true&page_size=200${more}`, token)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const idsOf = ({ items }: Listed): number[] => items.map(({ id }) => id)
const listTrashIds = async (token = owner): Promise<number[]> => idsOf(await listTrash(token))

describe('the trash list', () => {
  test('shows a deleted document unchanged, with its deletion time and restore deadline', async () => {
    const token = await registerAccount()
    const id = await add(token, { title: 'a "quoted" title', note: 'n' })
    const { json: before } = await get(documentPath(id), token)
    assert.equal((await remove(id, '', token)).status, 204)
    const { items, ...rest } = await listTrash(token)
    assert.deepEqual(rest, { total: 1, total_is_exact: true, page: 1, page_size: 200, next: null })
    const { deleted_at, expires_at, ...document } = items[0]!
    assert.deepEqual(document, before)
    assert.equal(Math.round((Date.parse(expires_at) - Date.parse(deleted_at)) / 86_400_000), 30)
    assert.equal((await get(PATH, token)).json.total, 0)
  })

  test('is sorted by deletion, latest first, in pages and by cursor, without expired documents', async () => {
    const token = await registerAccount()
    const [a, b, c, d] = [await add(token), await add(token), await add(token), await add(token)]
    for (const id of [b, d, c, a]) await remove(id, '', token)
    await expire(d)
    const all = await listTrash(token)
    assert.deepEqual([idsOf(all), all.total], [[a, c, b], 3])
    const second = (await get(`${PATH}?trashed=true&page=2&page_size=2`, token)).json
    assert.deepEqual([idsOf(second), second.total], [[b], 3])
    const followed: number[] = []
    for (let next: string | null = ''; next !== null; ) {
      const part = await get(`${PATH}?trashed=true&page_size=1${next && `&cursor=${next}`}`, token)
      followed.push(...idsOf(part.json))
      next = part.json.next
    }
    assert.deepEqual(followed, [a, c, b])
  })

  test('rejects cursors of other lists, and its own are rejected there', async () => {
    const token = await registerAccount()
    const ids = [await add(token), await add(token), await add(token), await add(token)]
    for (const id of ids.slice(2)) await remove(id, '', token)
    for (const [from, to] of [
      ['', 'trashed=true&'],
      ['trashed=true&', ''],
    ]) {
      const { next } = (await get(`${PATH}?${from}page_size=1`, token)).json
      const answer = await get(`${PATH}?${to}cursor=${next}`, token)
      assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['query', 'cursor']])
    }
  })

  test('filters by kind and tag, and includes superseded documents', async () => {
    const token = await registerAccount()
    const [old, young] = [await add(token, { kind: 'letter' }), await add(token, { kind: 'letter' })]
    const other = await add(token)
    for (const id of [old, other])
      await api.post(documentPath(id, '/tags'), { token, json: { label: 'red' } })
    await api.call('PATCH', documentPath(young), { token, json: { supersedes_id: old } })
    for (const id of [old, young, other]) await remove(id, '', token)
    for (const [filter, expected] of [
      ['', [other, young, old]],
      ['&include_superseded=false', [other, young, old]],
      ['&kind=letter', [young, old]],
      ['&tag=red', [other, old]],
      ['&tag=red&kind=letter', [old]],
      ['&tag=blue', []],
    ] as const) {
      const some = await listTrash(token, filter)
      assert.deepEqual([idsOf(some), some.total], [expected, expected.length], filter)
    }
  })

  test('is searched as live documents are', async () => {
    const token = await registerAccount()
    const titled = await add(token, { title: 'Invoice of the windmill' })
    const noted = await add(token, { title: 'Other', note: 'an invoice' })
    const paged = await add(token, { title: 'Letter' })
    const live = await add(token, { title: 'Invoice, not deleted' })
    await query(
      `insert into document_page (document_id, owner_id, page_number, status, method, text, job_id)
       select id, owner_id, 1, 'read', 'text_layer', 'See invoice 4711', gen_random_uuid() from document where id = $1`,
      [paged],
    )
    // Beyond the first 16,000 characters, a page has further vectors.
    const long = await add(token, { title: 'Long letter' })
    await query(
      `insert into document_page (document_id, owner_id, page_number, status, method, text, job_id)
       select id, owner_id, 1, 'read', 'text_layer', repeat('filler ', 3000) || 'quern', gen_random_uuid() from document where id = $1`,
      [long],
    )
    for (const id of [titled, noted, paged, long]) await remove(id, '', token)
    for (const [search, expected] of [
      ['quern', [long]],
      ['letter -quern', [paged]],
      ['invoice', [paged, noted, titled]],
      ['INVOI', [paged, noted, titled]],
      ['invoice -windmill', [paged, noted]],
      ['"invoice 4711"', [paged]],
      ['invoice windmill', [titled]],
      ['nothing', []],
      ['%20', [long, paged, noted, titled]],
      ['?!', []],
    ] as const) {
      const found = await listTrash(token, `&search=${encodeURIComponent(search).replace('%2520', '%20')}`)
      assert.deepEqual([idsOf(found), found.total], [expected, expected.length], search)
    }
    assert.deepEqual(
      (await get(`${PATH}?search=invoice`, token)).json.items.map(({ id }: Trashed) => id),
      [live],
    )
    assert.deepEqual(await listTrash(await registerAccount(), '&search=invoice').then(idsOf), [])
  })
})

describe('restoring a document', () => {
  test('restores its pages, tags and search index', async () => {
    const token = await registerAccount()
    const id = await add(token, { title: 'Report' })
    await api.post(documentPath(id, '/tags'), { token, json: { label: 'red' } })
    await query(
      `insert into document_page (document_id, page_number, status, method, text, job_id)
       values ($1, 1, 'read', 'text_layer', 'winter supplies', gen_random_uuid())`,
      [id],
    )
    const views = () =>
      Promise.all(
        [
          ...[
            documentPath(id),
            documentPath(id, '/content'),
            documentPath(id, '/pages'),
            documentPath(id, '/pages/1'),
            `${PATH}/tags`,
            PATH,
          ],
          ...['search=report', 'search=winter', 'search=%22winter+supplies%22', 'tag=red'].map(
            (filter) => `${PATH}?${filter}`,
          ),
        ].map(async (path) => [path, (await get(path, token)).text]),
      )
    const before = await views()
    await remove(id, '', token)
    assert.deepEqual((await get(`${PATH}/tags`, token)).json, [])
    assert.equal((await get(`${PATH}?search=winter`, token)).json.total, 0)
    const answer = await restore(id, token)
    assert.deepEqual([answer.status, answer.text], [200, before[0]![1]])
    assert.deepEqual(await views(), before)
    assert.deepEqual(await listTrashIds(token), [])
  })

  test("gives the same 404 for live, missing, expired and other owners' documents", async () => {
    const other = await registerAccount()
    const [live, expired, foreign] = [await add(), await add(), await add(other)]
    await remove(foreign, '', other)
    await remove(expired)
    await expire(expired)
    for (const id of [live, expired, foreign, 999_999]) {
      const answer = await restore(id)
      assert.deepEqual([answer.status, answer.json], DOCUMENT_MISSING)
    }
    assert.deepEqual(await listTrashIds(other), [foreign])
    assert.equal((await restore('x')).status, 422)
    assert.equal((await api.post(documentPath(foreign, '/restore'))).status, 401)
  })

  test('happens once, and repetitions under an Idempotency-Key get the same answer', async () => {
    const id = await add()
    await remove(id)
    const answers = await Promise.all(Array.from({ length: 10 }, () => restore(id)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(404)])
    await remove(id)
    const options = { token: owner, headers: { 'idempotency-key': 'restored once' } }
    const first = await api.post(documentPath(id, '/restore'), options)
    const again = await api.post(documentPath(id, '/restore'), options)
    assert.deepEqual([first.status, again.status, again.text], [200, 200, first.text])
  })

  test('is rejected if the same bytes were uploaded again', async () => {
    const text = 'the same bytes'
    const first = (await api.upload(owner, text)).json.id
    await remove(first)
    const second = (await api.upload(owner, text)).json.id
    assert.notEqual(second, first)
    const refused = await restore(first)
    assert.equal(refused.status, 409)
    assert.match(refused.json.detail, /uploaded again/)
    assert.ok((await listTrashIds()).includes(first))
    await remove(second)
    assert.equal((await restore(first)).status, 200)
    assert.equal((await restore(second)).status, 409)
  })

  test('waits for a concurrent upload of the same bytes', async () => {
    const id = await add()
    await remove(id)
    const [row] = await query('select owner_id, sha256 from document where id = $1', [id])
    const { owner_id: ownerId, sha256 } = row as { owner_id: number; sha256: Buffer }
    let restored: ReturnType<typeof restore> | undefined
    await db.transaction(async (tx) => {
      await tx.run(lockDigest(sha256))
      restored ??= restore(id)
      await until('the restore waits', async () => {
        const [waiting] = await query(`select from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`)
        return waiting
      })
      const text = { title: 't', mediaType: 'text/plain', byteSize: 1 }
      const unset = { documentDate: undefined, source: undefined, channel: undefined, note: undefined }
      await tx.one(insertDocument({ ownerId, sha256, kind: undefined, ...text, ...unset }))
    })
    assert.equal((await restored!).status, 409)
  })

  test('and uploading the same bytes concurrently leave one document', async () => {
    for (let round = 0; round < 10; round++) {
      const text = `contested ${round}`
      const { id } = (await api.upload(owner, text)).json
      await remove(id)
      const [restored, uploaded] = await Promise.all([restore(id), api.upload(owner, text)])
      const both = [restored.status, uploaded.status]
      if (restored.status === 200) assert.deepEqual([both, uploaded.json.id], [[200, 200], id])
      else assert.deepEqual(both, [409, 201])
    }
  })
})

describe('supersession after a restore', () => {
  const superseding = async (): Promise<{ old: number; young: number }> => {
    const [old, young] = [await add(), await add()]
    await patch(young, { supersedes_id: old })
    return { old, young }
  }
  const of = async (id: number): Promise<unknown> => {
    const { supersedes_id, superseded_by_id } = (await get(documentPath(id))).json
    return { supersedes_id, superseded_by_id }
  }

  test('is restored', async () => {
    const { old, young } = await superseding()
    await remove(young)
    assert.deepEqual(await of(old), { supersedes_id: null, superseded_by_id: null })
    assert.equal((await restore(young)).json.supersedes_id, old)
    assert.deepEqual(await of(old), { supersedes_id: null, superseded_by_id: young })
  })

  test('is dropped if another document has superseded the older one', async () => {
    const { old, young } = await superseding()
    const other = await add()
    await remove(young)
    await patch(other, { supersedes_id: old })
    assert.equal((await restore(young)).json.supersedes_id, null)
    assert.deepEqual(await of(old), { supersedes_id: null, superseded_by_id: other })
  })

  test('is dropped on both sides if both documents were deleted', async () => {
    const { old, young } = await superseding()
    await remove(young)
    await remove(old)
    assert.equal((await restore(young)).json.supersedes_id, null)
    assert.equal((await restore(old)).json.superseded_by_id, null)
  })

  test('still applies to a restored document that was superseded', async () => {
    const { old, young } = await superseding()
    await remove(old)
    assert.equal((await restore(old)).json.superseded_by_id, young)
  })

  test('is kept for one of two successors restored concurrently', async () => {
    for (let round = 0; round < 8; round++) {
      const { old, young } = await superseding()
      const other = await add()
      await remove(young)
      await patch(other, { supersedes_id: old })
      await remove(other)
      const answers = await Promise.all([restore(young), restore(other)])
      const superseded = answers.map(({ json }) => json.supersedes_id)
      assert.deepEqual(superseded.sort(), [null, old].sort())
    }
  })
})

describe('permanent deletion', () => {
  test('skips the trash and also deletes from it', async () => {
    const [live, deleted] = [await add(), await add()]
    await remove(deleted)
    for (const id of [live, deleted]) {
      const answer = await deletePermanently(id)
      assert.deepEqual([answer.status, answer.bytes.length], [204, 0])
      assert.ok(!(await listTrashIds()).includes(id))
      for (const gone of [
        await get(documentPath(id)),
        await restore(id),
        await deletePermanently(id),
        await remove(id),
      ])
        assert.deepEqual([gone.status, gone.json], DOCUMENT_MISSING)
    }
  })

  test('is allowed to the owner only; after it the document is missing from the trash', async () => {
    const id = await add()
    await remove(id)
    for (const answer of [await deletePermanently(id, await registerAccount()), await remove(id)])
      assert.deepEqual([answer.status, answer.json], DOCUMENT_MISSING)
    assert.equal((await restore(id)).status, 200)
    assert.equal((await remove(id, '?permanent=perhaps')).status, 422)
  })

  test('is rejected for a protected document', async () => {
    const id = await add()
    await patch(id, { protected: true })
    const answer = await deletePermanently(id)
    assert.equal(answer.status, 409)
    assert.match(answer.json.detail, /protected/)
    assert.equal((await get(documentPath(id))).status, 200)
  })

  test('is final, whatever runs concurrently', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await add()
      await remove(id)
      const [gone, again] = await Promise.all([deletePermanently(id), deletePermanently(id), restore(id)])
      assert.deepEqual([gone.status, again.status].sort(), [204, 404])
      for (const answer of [await get(documentPath(id)), await restore(id)]) assert.equal(answer.status, 404)
    }
  })
})

describe('other settings', () => {
  test('with TRASH_DAYS=0 a deleted document is gone immediately', async () => {
    const id = await add()
    assert.equal((await noTrashEdge.call('DELETE', documentPath(id), { token: owner })).status, 204)
    assert.ok(!(await listTrashIds()).includes(id))
    assert.equal((await restore(id)).status, 404)
  })

  test('with AUTH_LEVEL=none documents in the trash have no owner', async () => {
    const nobodys = async () => idsOf((await noAuthEdge.get(`${PATH}?trashed=true`)).json)
    const before = await nobodys()
    const { body, type } = createMultipart('of nobody')
    const { id } = (await noAuthEdge.post(PATH, { body, headers: { 'content-type': type } })).json
    await noAuthEdge.call('DELETE', documentPath(id))
    assert.deepEqual(await nobodys(), [id, ...before])
    assert.equal((await restore(id)).status, 404)
    assert.equal((await noAuthEdge.post(documentPath(id, '/restore'))).status, 200)
  })
})
