import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { Database, Query } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { SEALED_COLUMNS } from '../../sql/system/sealed.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { countSealedTexts, type ResealOptions, reseal } from '../../tasks/system/reseal.ts'
import { run } from '../../tasks/system/reseal.work.ts'
import { createTestDatabase } from '../database.ts'
import { FOREIGN_KEYS } from '../keys.ts'

/** A rotation seals all stored texts under the new key. */

const [OLD, NEW] = ['the old key with 32 characters...', 'the new key with 32 characters...']
const createKeys = (...secrets: string[]) => new SecretKeys({ secrets, stored: [] })
const [before, during, after] = [createKeys(OLD), createKeys(NEW, OLD), createKeys(NEW)]

const { db, query } = await createTestDatabase()
const TABLES = 'stored_key, webhook_endpoint, worker_queue, document, job, account'
beforeEach(() => query(`truncate ${TABLES} cascade`))

const start = (options: Partial<ResealOptions> = {}, through: Database = db, keys = during) =>
  reseal(through, keys, { signal: new AbortController().signal, onProgress: () => {}, ...options })

const insert = async (text: string, ...values: unknown[]): Promise<string> =>
  String((await query(`insert into ${text} returning *`, values))[0]!.id)

const addStoredKeys = async (count: number, keys = before): Promise<void> => {
  const ids = Array.from({ length: count }, () => uuidv7())
  const secrets = ids.map((id) => keys.seal(`stored_key:${id}`, id))
  await query('insert into stored_key select * from unnest($1::uuid[], $2::text[])', [ids, secrets])
}

/** Adds a text to each column. Returns the statement that reads it, its use and its secret. */
async function addTexts(): Promise<[statement: string, use: string, secret: string][]> {
  const account = Number(await insert(`account (email, password_hash) values ('a@example.com', 'x')`))
  const id = uuidv7()
  await insert(
    'account_totp (id, account_id, secret) values ($1, $2, $3)',
    id,
    account,
    before.seal(`totp:${id}`, 'codes'),
  )
  const use = `webhook:${account}`
  const hook = `url, host, events, secret, previous_secret) values`
  const target = `'https://example.com/', 'example.com', '{job.done}'`
  await insert(
    `webhook_endpoint (account_id, ${hook} ($1, ${target}, $2, $3)`,
    account,
    before.seal(use, 'hook'),
    before.seal(use, 'former'),
  )
  await insert(`webhook_endpoint (${hook} (${target}, $1, null)`, before.seal('webhook:0', 'service'))
  await query(
    `insert into worker_queue (name, endpoint_url, endpoint_concurrency, endpoint_secret) values ('q', 'https://a.example', 1, $1)`,
    [before.seal('worker_queue:q', 'queue')],
  )
  const document = await insert(
    `document (title, media_type, byte_size, sha256) values ('t', 'a/b', 1, sha256('1'))`,
  )
  const sealed = before.seal(`document:${document}`, 'pdf')
  await query('update document set sealed_password = $2 where id = $1', [document, sealed])
  await insert(
    `job (id, name, queue, mailbox, payload, status, max_tries) values ($1, 'documents.extract', 'documents', 'm',
      jsonb_build_object('documentId', $2::int, 'force', true, 'sealedPassword', $3::text), 'available', 3)`,
    uuidv7(),
    document,
    sealed,
  )
  await addStoredKeys(1)
  const [{ id: key }] = (await query('select id from stored_key')) as [{ id: string }]
  return [
    ['select secret from account_totp', `totp:${id}`, 'codes'],
    ['select secret from webhook_endpoint where account_id is not null', use, 'hook'],
    ['select previous_secret from webhook_endpoint where account_id is not null', use, 'former'],
    ['select secret from webhook_endpoint where account_id is null', 'webhook:0', 'service'],
    ['select endpoint_secret from worker_queue', 'worker_queue:q', 'queue'],
    ['select sealed_password from document', `document:${document}`, 'pdf'],
    [`select payload ->> 'sealedPassword' from job`, `document:${document}`, 'pdf'],
    ['select secret from stored_key', `stored_key:${key}`, key],
  ]
}

const readText = async (statement: string): Promise<string> =>
  Object.values((await query(statement))[0]!)[0] as string

describe('after the job', () => {
  test('the new key alone opens every text, and nothing else has changed', async () => {
    const texts = await addTexts()
    assert.deepEqual(await countSealedTexts(db, during), { current: 0, previous: 8, unknown: 0 })
    const steps: [string, number][] = []
    const counts = await start({ onProgress: (table, count) => steps.push([table, count]) })
    assert.deepEqual(counts, { renewed: 8, left: 0 })
    for (const [statement, use, secret] of texts)
      assert.equal(after.unseal(use, await readText(statement)), secret, statement)
    assert.deepEqual(await countSealedTexts(db, after), { current: 8, previous: 0, unknown: 0 })
    assert.deepEqual(steps.at(-1), ['job', 8])
    const [{ payload }] = (await query('select payload from job')) as [{ payload: object }]
    assert.deepEqual(Object.keys(payload).sort(), ['documentId', 'force', 'sealedPassword'])
    assert.deepEqual(await start(), { renewed: 0, left: 0 }, 'a repeated run finds nothing')
  })

  test('without previous keys, nothing is read or changed', async () => {
    await addStoredKeys(1, FOREIGN_KEYS)
    const statement = async (): Promise<never> => assert.fail('no statement is necessary')
    const untouched = { any: statement, one: statement } as never
    assert.deepEqual(await start({}, untouched, after), { renewed: 0, left: 0 })
    assert.deepEqual(await countSealedTexts(db, after), { current: 0, previous: 0, unknown: 1 })
  })

  test('texts that no key opens are counted and kept', async () => {
    await addStoredKeys(501)
    await query(
      `update stored_key set secret = secret || 'x' where id = (select id from stored_key order by id limit 1)`,
    )
    const logged: object[] = []
    const log = { info: () => assert.fail('it is not done'), warn: (counts: object) => logged.push(counts) }
    const signal = new AbortController().signal
    const ctx = { db, keys: during, log, signal, reportProgress: () => {} }
    assert.deepEqual(await run(ctx as never), { renewed: 500, left: 1 })
    assert.deepEqual(logged, [{ renewed: 500, left: 1 }])
  })

  test('the job says so', async () => {
    await addStoredKeys(1)
    const lines: string[] = []
    const log = {
      warn: () => assert.fail('nothing is left'),
      info: (_: object, line: string) => lines.push(line),
    }
    const signal = new AbortController().signal
    const ctx = { db, keys: during, log, signal, reportProgress: () => {} }
    assert.deepEqual(await run(ctx as never), { renewed: 1, left: 0 })
    assert.deepEqual(lines, ['No stored text needs SECRET_KEYS_PREVIOUS any more'])
  })
})

describe('the job', () => {
  test('continues where an interrupted run stopped', async () => {
    await addStoredKeys(1100)
    const abort = new AbortController()
    const stopped = start({ signal: abort.signal, onProgress: () => abort.abort() })
    await assert.rejects(stopped, { name: 'AbortError' })
    assert.deepEqual(await countSealedTexts(db, during), { current: 500, previous: 600, unknown: 0 })
    assert.deepEqual(await start(), { renewed: 600, left: 0 })
  })

  test('runs next to others without harm, whatever key is current there', async () => {
    await addStoredKeys(1100)
    const opposite = createKeys(OLD, NEW)
    await Promise.all([start(), start(), start({}, db, opposite)])
    assert.equal((await countSealedTexts(db, during)).unknown, 0)
    await start()
    assert.deepEqual(await countSealedTexts(db, after), { current: 1100, previous: 0, unknown: 0 })
    const rows = (await query('select id, secret from stored_key')) as { id: string; secret: string }[]
    for (const { id, secret } of rows) assert.equal(after.unseal(`stored_key:${id}`, secret), id)
  })

  test('keeps a text that a request changes meanwhile', async () => {
    await addStoredKeys(2)
    const [{ id }] = (await query('select id from stored_key limit 1')) as [{ id: string }]
    const written = before.seal(`stored_key:${id}`, 'another')
    const interfering = {
      ...db,
      one: async (statement: Query<never>) => {
        await query('update stored_key set secret = $2 where id = $1', [id, written])
        return db.one(statement)
      },
    } as Database
    assert.deepEqual(await start({}, interfering), { renewed: 1, left: 1 })
    assert.equal(await readText(`select secret from stored_key where id = '${id}'`), written)
    assert.deepEqual(await start(), { renewed: 1, left: 0 })
  })
})

test('the list has every column of sealed texts', async () => {
  const rows = await query(`select conrelid::regclass::text as table, conname as name from pg_constraint
    where pg_get_constraintdef(oid) like '%]{8}%' or pg_get_constraintdef(oid) like '%[\\\\w-]{8}%'`)
  const found = rows.map(({ table }) => table).sort()
  const listed = SEALED_COLUMNS.map(({ table }) => table).filter((table) => table !== 'job')
  assert.deepEqual(listed.sort(), found)
})
