import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { EXPORT_PARTS } from '../../sql/accounts/export.ts'
import { findExportContent, readExportedContents } from '../../sql/accounts/exports.ts'
import { vacuumAnalyze } from '../database.ts'
import { assertListed, findLine } from '../listed.ts'
import { assertWriteByIndex } from './plans-help.ts'
import { createPurgeDatabase } from './purge-help.ts'

/** An account's export has all rows that reference it, no secrets, and no data of others. */

const { db, query, other, account } = await createPurgeDatabase()
// More rows than one batch of each file.
const ROW_COUNT = 520
const ownAccount = await account(ROW_COUNT)
const otherAccount = await account(10)
await vacuumAnalyze(query)

/** Columns that reference an account but are not exported, with the reason. */
const EXCLUDED_COLUMNS: Readonly<Record<string, string>> = {
  'account_token.account_id': 'a token is a secret, and so is when one is good',
  'account_totp.account_id':
    'the second factor is a secret; that it was switched on is among the audited events',
  'email_change.account_id': 'in account.json, without its tokens',
  'account_export.account_id': 'an export has no exports',
  'account_quota.account_id': 'what an admin allows: GET /auth/me/quotas shows it',
  'ai_budget.account_id': 'what an admin allows: GET /ai/usage/budget shows it',
  'organization.created_by': 'its memberships are in the export',
  'queue_control.paused_by': 'about a queue: what the account did is among its audited events',
  'worker_queue.created_by': 'the account owns the queue, or is a member of the organization that does',
  'schedule.paused_by': 'about a schedule, likewise',
  'voice_settings.updated_by': 'about the settings of the service',
  'llm_current.chosen_by': 'about the model of the service',
}

test('every table that references an account is in its export, or has a reason not to be', async () => {
  const keys = await query(
    `select k.conrelid::regclass || '.' || a.attname as key from pg_constraint k
     join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
     where k.confrelid = 'account'::regclass and k.contype = 'f'`,
  )
  const known = [...EXPORT_PARTS.flatMap(({ foreignKeys }) => foreignKeys), ...Object.keys(EXCLUDED_COLUMNS)]
  assertListed(
    keys.map(({ key }) => key),
    known,
    [
      findLine('sql/accounts/export.ts', 'export const EXPORT_PARTS'),
      `${findLine('test/sql/export.test.ts', 'const EXCLUDED_COLUMNS')} with a reason`,
    ],
  )
})

async function readRows(part: (typeof EXPORT_PARTS)[number], owner: number) {
  const found: { key: string; json: string }[] = []
  for (let key = part.rows.start; ; key = found.at(-1)!.key) {
    const batch = await db.any(part.rows.readAfter(String(owner), key))
    assert.ok(batch.length <= part.rows.max)
    if (batch.length === 0) return found
    found.push(...batch)
  }
}

describe('each file', async () => {
  await query(
    `insert into audit_event (kind, actor_id, account_id, address, data, at)
     select k, a, o, '203.0.113.9', '{"email": "somebody@example.com", "session": "s"}', now() - n * interval '1 minute'
     from generate_series(1, $3) n, (values ('account.signed_in', $1::int, $1::int), ('account.deleted', $1, $2),
       ('account.role_changed', $2, $1), ('account.signed_in', $2, $2)) e(k, a, o)`,
    [ownAccount, otherAccount, ROW_COUNT],
  )
  for (const part of EXPORT_PARTS)
    test(`${part.file}: has each row of the account once, on one line, and none of another`, async () => {
      const [own, foreign] = [await readRows(part, ownAccount), await readRows(part, otherAccount)]
      assert.equal(new Set(own.map(({ key }) => key)).size, own.length)
      const keys = new Set(foreign.map(({ key }) => key))
      if (!part.file.startsWith('member') && !part.file.startsWith('audit'))
        assert.ok(own.every(({ key }) => !keys.has(key)))
      for (const { json } of own) {
        assert.doesNotMatch(json, /\n/)
        assert.equal(typeof JSON.parse(json), 'object')
      }
      for (const by of part.foreignKeys) {
        const [table, column] = by.split('.')
        const [{ n }] = (await query(`select count(*)::int as n from ${table} where ${column} = $1`, [
          ownAccount,
        ])) as [{ n: number }]
        assert.equal(own.length, n, by)
      }
    })

  test("audit events contain no other person's address or client location", async () => {
    const parseRows = async (file: string) =>
      (await readRows(EXPORT_PARTS.find((part) => part.file === file)!, ownAccount)).map(({ json }) =>
        JSON.parse(json),
      )
    const done = await parseRows('audit-done.ndjson')
    assert.equal(done.length, 2 * ROW_COUNT)
    for (const { kind, address, data } of done) {
      assert.equal(address, '203.0.113.9')
      assert.equal('email' in data, kind === 'account.signed_in')
    }
    const suffered = await parseRows('audit-suffered.ndjson')
    assert.equal(suffered.length, ROW_COUNT)
    for (const event of suffered) assert.ok(!('address' in event) && !('actor_id' in event))
  })

  test('no column is a secret', async () => {
    const fields = new Set<string>()
    const checkChildRows = async (part: (typeof EXPORT_PARTS)[number]) => {
      const [first] = await readRows(part, ownAccount)
      if (first === undefined) return
      for (const { rows } of part.childFiles ?? [])
        for (const { json } of await db.any(rows.readAfter(first.key, rows.start)))
          for (const name of Object.keys(JSON.parse(json))) fields.add(name)
    }
    for (const part of EXPORT_PARTS) {
      for (const { json } of await readRows(part, ownAccount))
        for (const name of Object.keys(JSON.parse(json))) fields.add(name)
      await checkChildRows(part)
    }
    assert.ok(fields.size > 60)
    const secret = /digest|hash|password|secret(?!_rolled)|token(?!s$)|sealed|fingerprint/
    assert.deepEqual(
      [...fields].filter((name) => secret.test(name)),
      [],
    )
  })
})

test('documents that left the trash are missing', async () => {
  await query(
    `insert into document (owner_id, title, media_type, byte_size, sha256, deleted_at, expires_at)
     values ($1, 'kept', 't', 1, sha256('k'), now(), now() + interval '1 day'), ($1, 'gone', 't', 1, sha256('g'), now(), now())`,
    [otherAccount],
  )
  const titles = (
    await readRows(EXPORT_PARTS.find(({ file }) => file === 'documents.ndjson')!, otherAccount)
  ).map(({ json }) => JSON.parse(json).title)
  assert.ok(titles.includes('kept') && !titles.includes('gone'))
  const contents = await db.any(readExportedContents(otherAccount, 0, 100))
  assert.ok(contents.some(({ title }) => title === 'kept') && !contents.some(({ title }) => title === 'gone'))
})

describe('reads by index', () => {
  before(async () => {
    await account(1000)
    await query(
      `with made as (
         insert into account (email, password_hash) select 'm' || n || '@example.com', 'x' from generate_series(1, 1000) n
         returning id
       ), joined as (
         insert into organization_member (organization_id, user_id, role)
         select o.id, m.id, 'member' from organization o, made m where o.slug = 'stays'
       )
       insert into payment_customer (user_id, provider_customer_id) select id, 'cus ' || id from made`,
    )
    await vacuumAnalyze(query)
  })
  for (const part of EXPORT_PARTS)
    test(part.file, async () => {
      const table = part.foreignKeys[0]?.split('.')[0] ?? 'audit'
      await assertWriteByIndex(other, () => part.rows.readAfter(String(otherAccount), part.rows.start), table)
    })
  test('bytes of documents', () =>
    assertWriteByIndex(other, () => readExportedContents(otherAccount, 0, 100), 'document'))
  test('an export', () =>
    assertWriteByIndex(other, () => findExportContent(randomUUID(), otherAccount, 7), 'account_export'))
})
