import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import {
  deletePagesOfDeletedDocuments,
  findUnreferencedBlobs,
  lockDigest,
  sealBlob,
} from '../../sql/documents/blobs.ts'
import { deleteDocuments, insertDocument, restoreDocument } from '../../sql/documents/documents.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { createBlobs, type UploadedBlob } from '../../tasks/documents/blobs/blobs.ts'
import { collectGarbage } from '../../tasks/documents/collect.task.ts'
import { GRACE_SECONDS } from '../../tasks/documents/collect.work.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { createStoreKinds } from '../blobs.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

const database = await createTestDatabase()
const { db, query } = database
const kinds = await createStoreKinds(database)

const warnings: object[] = []
const log = { info: () => {}, error: () => {}, warn: (data: object) => void warnings.push(data) }
const runTask = (blobs: unknown, signal = new AbortController().signal) =>
  collectGarbage.run({ db, blobs, signal, log } as unknown as TaskContext, {})
const count = async (what: string) => (await query(`select count(*)::int as n from ${what}`))[0]!.n

async function* yieldOnce(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const FIELDS = {
  ownerId: null,
  title: 't',
  kind: undefined,
  mediaType: 'text/plain',
  documentDate: undefined,
  source: undefined,
  channel: undefined,
  note: undefined,
}

/** Creates a document for an upload whose bytes are stored; returns the document's id. */
async function addDocument({ at, sha256, byteSize }: UploadedBlob): Promise<number> {
  const { id } = await db.transaction(async (tx) => {
    await tx.run(lockDigest(sha256))
    await tx.maybeOne(sealBlob(at.blob_id, sha256, byteSize))
    return tx.one(insertDocument({ ...FIELDS, byteSize, sha256 }))
  })
  return id
}

/** Makes all rows older by this many seconds. */
const ageRows = async (seconds: number): Promise<void> => {
  await query('update blob set created_at = created_at - make_interval(secs => $1)', [seconds])
  await query(
    `update document set deleted_at = deleted_at - make_interval(secs => $1),
       expires_at = expires_at - make_interval(secs => $1)`,
    [seconds],
  )
}
const TRASH_DAYS = 30
const TRASH_SECONDS = TRASH_DAYS * 86_400
const addPages = (document: number, n: number) =>
  query(
    `insert into document_page (document_id, page_number, status, method, text, job_id)
       select $1, p, 'read', 'text_layer', 'text', gen_random_uuid() from generate_series(1, $2) p`,
    [document, n],
  )

for (const kind of kinds) {
  describe(`collecting from ${kind.name}`, { concurrency: false }, () => {
    const blobs = createBlobs(db, parseSettings(kind.env))
    const run = () => runTask(blobs)
    const put = (bytes: Uint8Array = randomBytes(1000)) => blobs.store(yieldOnce(bytes))

    beforeEach(async () => {
      await query('truncate document, blob cascade')
      await kind.deleteAll()
      warnings.length = 0
    })

    test('keeps what a document needs, however old it is', async () => {
      const stored = await put()
      await addDocument(stored)
      await ageRows(100 * GRACE_SECONDS)
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
      assert.equal(await blobs.exists(stored.at, 1000), true)
    })

    test('keeps what is in the trash, and what is restored from it', async () => {
      const stored = await put()
      const id = await addDocument(stored)
      await addPages(id, 3)
      await db.run(deleteDocuments([id], null, TRASH_DAYS))
      await ageRows(TRASH_SECONDS - 60)
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
      await db.one(restoreDocument(id, null))
      await ageRows(100 * GRACE_SECONDS)
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
      assert.deepEqual([await kind.count(), await count('document_page')], [1, 3])
    })

    test('removes pages and bytes a day after a document left the trash, and not before', async () => {
      const stored = await put()
      const id = await addDocument(stored)
      await addPages(id, 3)
      await db.run(deleteDocuments([id], null, TRASH_DAYS))
      await ageRows(TRASH_SECONDS + GRACE_SECONDS - 60)
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
      assert.deepEqual([await kind.count(), await count('document_page')], [1, 3])
      await ageRows(120)
      assert.deepEqual(await run(), { documents: 1, blobs: 1, failed: 0 })
      assert.deepEqual([await kind.count(), await count('document_page'), await count('blob')], [0, 0, 0])
      assert.equal(await count('document'), 1)
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
    })

    test('keeps bytes that another document uses', async () => {
      const stored = await put()
      const first = await addDocument(stored)
      await db.run(deleteDocuments([first], null, 0))
      await ageRows(2 * GRACE_SECONDS)
      await addDocument(await put())
      const again = await db.one(insertDocument({ ...FIELDS, byteSize: 1000, sha256: stored.sha256 }))
      assert.equal(again.created, true)
      assert.deepEqual(await run(), { documents: 1, blobs: 0, failed: 0 })
      assert.equal(await blobs.exists(stored.at, 1000), true)
    })

    test('removes bytes whose documents were deleted with their owner', async () => {
      await addDocument(await put())
      await query('delete from document')
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
      await ageRows(GRACE_SECONDS + 60)
      assert.deepEqual(await run(), { documents: 0, blobs: 1, failed: 0 })
      assert.equal(await kind.count(), 0)
    })

    test('removes unfinished uploads after a day', async () => {
      await put()
      await put(randomBytes(6 * 1024 * 1024))
      assert.deepEqual(await run(), { documents: 0, blobs: 0, failed: 0 })
      await ageRows(GRACE_SECONDS + 60)
      await put()
      assert.deepEqual(await run(), { documents: 0, blobs: 2, failed: 0 })
      assert.deepEqual([await kind.count(), await count('blob')], [1, 1])
    })

    test('keeps the bytes of an upload that commits the same bytes during the collection', async () => {
      for (let round = 0; round < 5; round++) {
        const bytes = randomBytes(500)
        await db.run(deleteDocuments([await addDocument(await put(bytes))], null, 0))
        await ageRows(2 * GRACE_SECONDS)
        const second = await put(bytes)
        const [id] = await Promise.all([addDocument(second), run(), run()])
        await blobs.discard(second.at)
        await run()
        const [row] = await query(`select b.id from blob b join document d using (sha256) where d.id = $1`, [
          id,
        ])
        assert.equal(Buffer.compare(await blobs.readWhole(Number(row!.id), 500), bytes), 0)
      }
    })

    test('continues after a failed removal, which a later run repeats', async () => {
      const [lost, other] = [await put(), await put()]
      await ageRows(2 * GRACE_SECONDS)
      const failing = {
        remove: (at: { blob_id: number }) =>
          at.blob_id === lost.at.blob_id ? Promise.reject(new Error('no disk')) : blobs.remove(other.at),
      }
      assert.deepEqual(await runTask(failing), { documents: 0, blobs: 1, failed: 1 })
      assert.equal(warnings.length, 1)
      assert.deepEqual(await run(), { documents: 0, blobs: 1, failed: 0 })
      assert.equal(await kind.count(), 0)
    })

    test('closes', () => blobs.close())
  })
}

describe('collecting', { concurrency: false }, () => {
  const blobs = createBlobs(db, parseSettings({}))
  beforeEach(() => query('truncate document, blob cascade'))

  test('waits for an earlier upload, while a later one stores its own bytes', async () => {
    const bytes = randomBytes(100)
    const first = await blobs.store(yieldOnce(bytes))
    await db.run(deleteDocuments([await addDocument(first)], null, 0))
    await ageRows(2 * GRACE_SECONDS)
    const { promise: committed, resolve: commit } = Promise.withResolvers<void>()
    const { promise: locked, resolve: hasLock } = Promise.withResolvers<void>()
    const upload = db.transaction(async (tx) => {
      await tx.run(lockDigest(first.sha256))
      await tx.one(insertDocument({ ...FIELDS, byteSize: 100, sha256: first.sha256 }))
      hasLock()
      await committed
    })
    await locked
    const collecting = runTask(blobs)
    await until(
      'the collection waits',
      async () =>
        (
          await query(`select 1 from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`)
        ).length > 0,
    )
    commit()
    await upload
    assert.deepEqual(await collecting, { documents: 1, blobs: 0, failed: 0 })
    assert.equal(await blobs.exists(first.at, 100), true)
  })

  test('an upload that was given up for its age cannot be sealed', async () => {
    const stored = await blobs.store(yieldOnce(randomBytes(10)))
    await query('update blob set deleted = true')
    assert.equal(await db.maybeOne(sealBlob(stored.at.blob_id, stored.sha256, 10)), null)
  })

  test('handles any number of documents and blobs', async () => {
    await query(`insert into document (title, media_type, byte_size, sha256, deleted_at, expires_at)
      select 't', 'text/plain', 1, sha256(n::text::bytea), at, at
      from generate_series(1, 130) n, (select now() - interval '2 days' as at) long_ago`)
    await query(`insert into blob (sha256, byte_size, created_at)
      select sha256(n::text::bytea), 1, now() - interval '2 days' from generate_series(1, 1100) n`)
    await query(`insert into document (title, media_type, byte_size, sha256)
      select 't', 'text/plain', 1, sha256(n::text::bytea) from generate_series(61, 1040) n`)
    assert.deepEqual(await runTask(blobs), { documents: 130, blobs: 120, failed: 0 })
    assert.equal(await count('blob'), 980)
  })

  test('reads blobs in order, in batches', async () => {
    await query(`insert into blob (sha256, byte_size, created_at)
      select sha256(n::text::bytea), 1, now() - interval '2 days' from generate_series(1, 5) n`)
    const ids = (await query('select id from blob order by id')).map(({ id }) => Number(id))
    assert.deepEqual(await db.one(findUnreferencedBlobs(0, 60, 2)), {
      last: ids[1],
      unneeded: ids.slice(0, 2),
    })
    assert.deepEqual(await db.one(findUnreferencedBlobs(ids[3]!, 60, 2)), {
      last: ids[4],
      unneeded: [ids[4]],
    })
    assert.deepEqual(await db.one(findUnreferencedBlobs(ids[4]!, 60, 2)), { last: null, unneeded: [] })
    assert.deepEqual(await db.one(findUnreferencedBlobs(0, 3 * 86_400, 9)), { last: ids[4], unneeded: [] })
    assert.deepEqual(await db.one(deletePagesOfDeletedDocuments(60, 10)), { count: 0 })
  })

  test('an abort ends it', async () => {
    await blobs.store(yieldOnce(randomBytes(10)))
    await ageRows(2 * GRACE_SECONDS)
    const abort = new AbortController()
    abort.abort()
    await assert.rejects(runTask(blobs, abort.signal), { name: 'AbortError' })
    assert.equal(await count('blob'), 1)
  })

  test('runs every hour, one at a time', () => {
    const entry = scheduleEntries.find(({ identifier }) => identifier === 'collect')
    assert.deepEqual([entry?.match, entry?.task.name], ['17 * * * *', 'documents.collect'])
    assert.deepEqual([collectGarbage.actor?.({}, null), collectGarbage.whenBusy], ['collect', 'join'])
  })
})
