import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { fromBufferPromise } from 'yauzl'
import { EXPORT_PARTS } from '../../sql/accounts/export.ts'
import { findBlobLocation } from '../../sql/documents/blobs.ts'
import { insertDocument } from '../../sql/documents/documents.ts'
import { exportAccount } from '../../tasks/accounts/export.task.ts'
import { toFileName } from '../../tasks/accounts/export.work.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { collectGarbage } from '../../tasks/documents/collect.task.ts'
import { sealUpload } from '../../tasks/documents/store.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createStoreKinds } from '../blobs.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions } from '../runs.ts'

/** An export has the right contents, and interrupted exports leave nothing behind. */

const database = await createTestDatabase()
const { db, query } = database
const log = { info: () => {}, error: () => {}, warn: () => {} }
let count = 0

async function* yieldOnce(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

for (const kind of await createStoreKinds(database))
  describe(`an export in ${kind.name}`, { concurrency: false }, () => {
    const blobs = createBlobs(db, parseSettings(kind.env))
    const seen: [string, number | undefined, number | undefined][] = []

    /** Returns an export job that can run several times. */
    function createJob(signal = new AbortController().signal) {
      const id = randomUUID() as string
      const context = {
        ...{ db, blobs, log, signal, settings: parseSettings({}) },
        job: { id, attempt: 1, ownerId: null, requestId: null },
        reportProgress: (label: string, current?: number, total?: number) =>
          void seen.push([label, current, total]),
        runFenced: (work: Parameters<TaskContext['runFenced']>[0]) => db.transaction(work),
      } as unknown as TaskContext
      return { id, run: (account_id: number) => exportAccount.run(context, { account_id }) }
    }

    async function addAccount(): Promise<number> {
      const email = `${kind.name}${++count}@example.com`
      const [row] = await query(
        `insert into account (email, password_hash, full_name) values ($1, 'the hash', 'Ann') returning id`,
        [email],
      )
      return row!.id as number
    }

    async function addDocument(owner: number, title: string, bytes: Buffer, mediaType = 'text/plain') {
      const blob = await blobs.store(yieldOnce(bytes))
      const made = await db.transaction(async (tx) => {
        await sealUpload(tx, blob, null)
        const { sha256, byteSize } = blob
        const more = {
          kind: undefined,
          documentDate: undefined,
          source: undefined,
          channel: undefined,
          note: undefined,
        }
        return tx.one(insertDocument({ ...more, ownerId: owner, title, mediaType, byteSize, sha256 }))
      })
      return made.id
    }

    async function readArchive(exportId: string): Promise<Buffer> {
      const [row] = await query(
        `select b.id::int, x.byte_size::int from account_export x join blob b on b.sha256 = x.sha256 where x.id = $1`,
        [exportId],
      )
      const at = await db.one(findBlobLocation(row!.id as number))
      const pieces: Buffer[] = []
      for await (const piece of blobs.read(at, 0, row!.byte_size as number)) pieces.push(Buffer.from(piece))
      return Buffer.concat(pieces)
    }

    async function readFiles(exportId: string): Promise<Map<string, Buffer>> {
      const zip = await fromBufferPromise(await readArchive(exportId), { lazyEntries: true })
      const files = new Map<string, Buffer>()
      for await (const entry of zip.eachEntry()) {
        const chunks: Buffer[] = []
        for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
        files.set(entry.fileName, Buffer.concat(chunks))
      }
      return files
    }

    const linesOf = (files: Map<string, Buffer>, name: string) =>
      files
        .get(name)!
        .toString()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
    const countUnsealed = async () =>
      (await query('select count(*)::int as n from blob where sha256 is null'))[0]!.n as number

    test('has a file for each kind of rows, and documents as they were stored', async () => {
      const [id, other] = [await addAccount(), await addAccount()]
      const large = randomBytes(700_000)
      const first = await addDocument(id, 'Brief: 12/2025.txt', Buffer.from(`${kind.name} `.repeat(100_000)))
      const second = await addDocument(id, '../../etc/passwd', large, 'application/pdf')
      await addDocument(other, 'not mine', randomBytes(10))
      await query(
        `insert into document_page (document_id, page_number, status, method, text, job_id)
         select $1, n, 'read', 'text_layer', 'page' || chr(10) || n, gen_random_uuid() from generate_series(1, 45) n`,
        [first],
      )
      await query(
        `with c as (insert into ai_conversation (id, user_id, owner_id, title, provider, model)
           select gen_random_uuid(), o, o, 'talk ' || o, 'p', 'm' from unnest(array[$1::int, $2]) o returning id, owner_id)
         insert into ai_message (id, conversation_id, role, status, content, settled_at)
         select gen_random_uuid(), id, 'user', 'complete', owner_id || ' says ' || n, now() from c, generate_series(1, 30) n`,
        [id, other],
      )
      await query(
        `insert into api_key (id, account_id, name, digest, hint, scopes)
         values (gen_random_uuid(), $1, 'k', sha256($2), 'hint', '{jobs:read}')`,
        [id, `the key ${kind.name}`],
      )
      seen.length = 0
      const one = createJob()
      const result = await one.run(id)
      const bytes = await readArchive(one.id)
      assert.deepEqual(result, { export_id: one.id, byte_size: bytes.length })
      const files = await readFiles(one.id)
      const rows = EXPORT_PARTS.flatMap(({ file, childFiles = [] }) => [
        file,
        ...childFiles.map((part) => part.file),
      ])
      assert.deepEqual(
        [...files.keys()],
        [
          'account.json',
          ...rows,
          `documents/${first}/Brief_ 12_2025.txt`,
          `documents/${second}/${toFileName('../../etc/passwd')}.pdf`,
        ],
      )
      const { account: mine, email_change } = JSON.parse(files.get('account.json')!.toString())
      assert.deepEqual([mine.id, mine.full_name, email_change], [id, 'Ann', null])
      assert.deepEqual(
        linesOf(files, 'documents.ndjson').map(({ id, title }) => [id, title]),
        [
          [first, 'Brief: 12/2025.txt'],
          [second, '../../etc/passwd'],
        ],
      )
      assert.deepEqual(
        linesOf(files, 'document-pages.ndjson').map(({ page_number, text }) => [page_number, text]),
        Array.from({ length: 45 }, (_, i) => [i + 1, `page\n${i + 1}`]),
      )
      assert.equal(linesOf(files, 'conversations.ndjson').length, 1)
      assert.deepEqual(
        linesOf(files, 'messages.ndjson').map(({ content }) => content),
        Array.from({ length: 30 }, (_, i) => `${id} says ${i + 1}`),
      )
      assert.equal(
        files.get(`documents/${first}/Brief_ 12_2025.txt`)!.toString(),
        `${kind.name} `.repeat(100_000),
      )
      assert.equal(Buffer.compare([...files.values()].at(-1)!, large), 0)
      const key = createHash('sha256').update(`the key ${kind.name}`).digest()
      for (const [name, content] of files)
        for (const secret of [
          'the hash',
          key.toString('hex'),
          key.toString('base64'),
          'not mine',
          `talk ${other}`,
        ])
          assert.ok(!content.includes(secret), `${name}: ${secret}`)
      const [last] = seen.slice(-1)
      assert.deepEqual(last, ['Exported', EXPORT_PARTS.length + 2, EXPORT_PARTS.length + 2])
      const currents = seen.map(([, current]) => current!)
      assert.deepEqual(
        currents,
        [...currents].sort((a, b) => a - b),
      )
    })

    test('of an account without data is small, and has all files', async () => {
      const one = createJob()
      await one.run(await addAccount())
      const files = await readFiles(one.id)
      for (const { file } of EXPORT_PARTS) assert.equal(files.get(file)!.length, 0, file)
      assert.ok(!files.has('missing-documents.json'))
    })

    test('names the documents whose bytes are missing in the store', async () => {
      const id = await addAccount()
      const lost = await addDocument(id, 'lost', randomBytes(50))
      await query(`delete from blob_chunk`)
      await kind.deleteAll()
      const gone = await addDocument(id, 'without a row', randomBytes(50))
      await query(`delete from blob where sha256 = (select sha256 from document where id = $1)`, [gone])
      const kept = await addDocument(id, 'kept', randomBytes(50))
      const one = createJob()
      await one.run(id)
      const files = await readFiles(one.id)
      assert.deepEqual(JSON.parse(files.get('missing-documents.json')!.toString()), [lost, gone])
      assert.ok(files.has(`documents/${kept}/kept.txt`))
    })

    test('is the same one after an attempt that was interrupted when it was complete', async () => {
      const id = await addAccount()
      const one = createJob()
      const first = await one.run(id)
      await query(`insert into session (id, account_id) values (gen_random_uuid(), $1)`, [id])
      assert.deepEqual(await one.run(id), first)
      const rows = await query('select count(*)::int as n from account_export where account_id = $1', [id])
      assert.deepEqual(rows, [{ n: 1 }])
    })

    test('that is interrupted leaves nothing, and fails with the reason', async () => {
      const id = await addAccount()
      for (let n = 0; n < 5; n++) await addDocument(id, `d${n}`, randomBytes(100_000), 'application/pdf')
      const [before, stored] = [await kind.count(), await countUnsealed()]
      const abort = new AbortController()
      const one = createJob(abort.signal)
      const reason = new Error('cancelled')
      const read = blobs.read.bind(blobs)
      let reads = 0
      blobs.read = (...args) => {
        if (++reads === 3) abort.abort(reason)
        return read(...args)
      }
      await assert.rejects(one.run(id), reason)
      blobs.read = read
      assert.deepEqual([await kind.count(), await countUnsealed()], [before, stored])
      assert.deepEqual(await query('select 1 from account_export where id = $1', [one.id]), [])
    })

    test('fails like the store, and leaves nothing', async () => {
      const id = await addAccount()
      await addDocument(id, 'd', randomBytes(100_000), 'application/pdf')
      const [before, stored] = [await kind.count(), await countUnsealed()]
      const read = blobs.read.bind(blobs)
      blobs.read = async function* (at, from, length) {
        for await (const piece of read(at, from, length)) {
          yield piece
          throw new Error('the wire was cut')
        }
      }
      await assert.rejects(createJob().run(id), { code: 'document.store_failed' })
      blobs.read = read
      assert.deepEqual([await kind.count(), await countUnsealed()], [before, stored])
    })

    test('of a deleted account does not exist', async () => {
      await assert.rejects(createJob().run(2_147_483_647), { code: 'account.missing' })
    })

    test('keeps its bytes until it expires', async () => {
      const one = createJob()
      await one.run(await addAccount())
      const runCollection = () =>
        collectGarbage.run(
          { db, blobs, signal: new AbortController().signal, log } as unknown as TaskContext,
          {},
        )
      await query(`update blob set created_at = created_at - interval '10 days'`)
      await runCollection()
      assert.ok((await readFiles(one.id)).size > 0)
      await query('delete from account_export where id = $1', [one.id])
      const before = await kind.count()
      await runCollection()
      assert.ok((await kind.count()) < before)
    })
  })

describe('names of files', () => {
  test('keep valid names, without forbidden characters', () => {
    assert.equal(toFileName('Report 2025.pdf'), 'Report 2025.pdf')
    assert.equal(toFileName('Ünïcode 日本 😀.txt'), 'Ünïcode 日本 😀.txt')
    assert.equal(toFileName('../../etc/passwd'), '__.._etc_passwd')
    assert.equal(toFileName('C:\\x?.txt '), 'C__x_.txt_')
    assert.equal(toFileName('a\u0000b\nc\u202ed'), 'a_b_c_d')
    assert.equal(toFileName(''), '_')
    assert.equal(toFileName('x'.repeat(300)).length, 100)
  })

  test('never lead out of their folder, whatever the title', () => {
    const title = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc
        .array(fc.constantFrom('..', '/', '\\', '.', ' ', ':', '\0', '\ud800', 'a'), { maxLength: 9 })
        .map((all) => all.join('')),
    )
    fc.assert(
      fc.property(title, (text) => {
        const name = toFileName(text)
        assert.match(name, /^[^/\\:*?"<>|\p{Cc}]+$/u)
        assert.ok(name.isWellFormed() && [...name].length <= 100)
        assert.doesNotMatch(name, /^\.|[. ]$/)
      }),
      createRunOptions(),
    )
  })
})
