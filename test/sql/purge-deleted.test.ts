import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deleteAccount, LEAVE_BATCH_SIZE } from '../../sql/accounts/deletions.ts'
import { insertDocument } from '../../sql/documents/documents.ts'
import { enqueueJobs } from '../../sql/jobs/jobs.ts'
import { insertMember, markOrganizationDeleted } from '../../sql/orgs/orgs.ts'
import {
  COLLECTION_DEPENDENTS,
  ORGANIZATION_DEPENDENTS,
  PURGE_BATCH,
  purgeRows,
  removeAccount,
} from '../../sql/retention/purge.ts'
import { waitForLock } from '../database.ts'
import { runPurge } from '../purge.ts'
import { buildJobSpec } from './ledger-help.ts'
import { createPurgeDatabase, MORE_THAN_A_BATCH, tablesOf } from './purge-help.ts'

/** Visibility of deleted accounts, organizations and collections until their rows are purged. */

const { db, query, other, account, count, countUnlocked } = await createPurgeDatabase()

describe('a deleted account', () => {
  let documents = 0
  const document = (ownerId: number) =>
    insertDocument({
      ...{
        ownerId,
        title: 't',
        kind: undefined,
        mediaType: 'text/plain',
        byteSize: 1,
        sha256: Buffer.alloc(32, ++documents),
      },
      ...{ documentDate: undefined, source: undefined, channel: undefined, note: undefined },
    })

  test('leaves nothing behind with a request in progress, and gets nothing afterwards', async () => {
    const id = await account()
    await other.query('begin')
    const { sql, values } = document(id)
    await other.query({ text: sql.replaceAll('$slonik_', '$'), values: values as unknown[] })
    const deleted = db.one(deleteAccount(id))
    // The deletion waits for the open transaction, whose row references the account.
    await waitForLock(query)
    await other.query('commit')
    await deleted
    await db.one(document(id))
    await runPurge(db)
    assert.equal(await count(`document where owner_id = ${id}`), 0)
    const late = { code: 'auth.required' }
    await assert.rejects(db.one(document(id)), late)
    await assert.rejects(db.any(enqueueJobs([{ ...buildJobSpec(), owner_id: id }], 0)), late)
  })

  test('cannot join an organization', async () => {
    const [id, owner] = [await account(), await account()]
    const [row] = await query(`insert into organization (name, slug) values ('N', 'joined') returning id`)
    await db.one(insertMember(row!.id as number, owner, 'owner'))
    await db.one(deleteAccount(id))
    await assert.rejects(db.one(insertMember(row!.id as number, id, 'member')), { code: 'account.missing' })
  })

  test('is not removed while others can see it', async () => {
    assert.equal(await db.run(removeAccount(await account())), 0)
  })

  test('leaves many organizations in batches, with audit events', async () => {
    const [id, heir] = [await account(), await account()]
    const many = LEAVE_BATCH_SIZE + 100
    await query(
      `with made as (insert into organization (name, slug) select 'N', 'many-' || n from generate_series(1, $3) n returning id)
       insert into organization_member (organization_id, user_id, role)
       select id, $1::int, 'owner' from made union all select id, $2::int, 'member' from made where id % 2 = 0`,
      [id, heir, many],
    )
    const first = await db.transaction(async (tx) => {
      const gone = await tx.one(deleteAccount(id))
      assert.equal((await count('organization')) - (await countUnlocked('organization')), LEAVE_BATCH_SIZE)
      return gone
    })
    assert.equal(first.inherited.length + first.deleted.length, LEAVE_BATCH_SIZE)
    assert.equal(await count(`organization_member where user_id = ${id}`), many - LEAVE_BATCH_SIZE)
    const done = await runPurge(db)
    assert.equal(await count(`organization_member where user_id = ${id}`), 0)
    const [inherited, deleted] = [
      await count(`organization_member where user_id = ${heir} and role = 'owner'`),
      done.organizations,
    ]
    assert.equal(inherited + deleted, many)
    assert.equal(await count(`organization where slug like 'many-%'`), inherited)
    const kinds = await query(
      `select kind, count(*)::int as n from audit_event where request_id = 'the request' and actor_id is null group by 1 order by 1`,
    )
    assert.deepEqual(kinds, [
      { kind: 'organization.deleted', n: deleted - first.deleted.length },
      { kind: 'organization.inherited', n: inherited - first.inherited.length },
    ])
  })

  test('is not chosen as heir', async () => {
    const [owner, dead, member] = [await account(), await account(), await account()]
    const [row] = await query(`insert into organization (name, slug) values ('N', 'heirs') returning id`)
    for (const [user, role] of [
      [owner, 'owner'],
      [dead, 'admin'],
      [member, 'member'],
    ] as const)
      await db.one(insertMember(row!.id as number, user, role))
    await db.one(deleteAccount(dead, 0))
    assert.deepEqual((await db.one(deleteAccount(owner))).inherited, [
      { organization_id: row!.id, heir_id: member },
    ])
    assert.deepEqual((await db.one(deleteAccount(member))).deleted, [
      { organization_id: row!.id, slug: 'heirs' },
    ])
    assert.deepEqual((({ accounts, organizations }) => ({ accounts, organizations }))(await runPurge(db)), {
      accounts: 3,
      organizations: 1,
    })
  })
})

test('a deleted organization loses its members and invites in batches', async () => {
  const [row] = await query(`insert into organization (name, slug) values ('N', 'big') returning id`)
  const id = row!.id as number
  await query(
    `with made as (insert into account (email, password_hash) select 'm' || n || '@example.com', 'x' from generate_series(1, $2) n returning id)
     insert into organization_member (organization_id, user_id, role) select $1, id, case when id % 100 = 0 then 'owner' else 'member' end from made`,
    [id, MORE_THAN_A_BATCH],
  )
  await query(
    `insert into organization_invite (organization_id, email, role, expires_at) select $1, 'i' || n || '@example.com', 'member', now() from generate_series(1, $2) n`,
    [id, MORE_THAN_A_BATCH],
  )
  await query(
    `insert into worker_queue (name, organization_id) select 'big-' || n, $1 from generate_series(1, $2) n`,
    [id, MORE_THAN_A_BATCH],
  )
  assert.deepEqual(await db.maybeOne(markOrganizationDeleted(id)), { slug: 'big' })
  assert.equal(await db.maybeOne(markOrganizationDeleted(id)), null)
  await query(`insert into organization (name, slug) values ('N', 'big')`)
  for (const some of ORGANIZATION_DEPENDENTS) {
    const before = await count(some.table)
    await db.transaction(async (tx) => {
      const max = some.max ?? PURGE_BATCH
      assert.equal((await tx.one(purgeRows(some, id))).count, max)
      assert.equal(before - (await countUnlocked(some.table)), max)
    })
  }
  assert.deepEqual(await runPurge(db), {
    accounts: 0,
    organizations: 1,
    rows: 2 * (MORE_THAN_A_BATCH - PURGE_BATCH) + MORE_THAN_A_BATCH - 20,
  })
  assert.equal(await count(`organization where id = ${id}`), 0)
})

test('a deleted collection loses its files and their chunks in batches', async () => {
  const [row] = await query(
    `insert into rag_collection (name, version, deleted_at) values ('c', 1, now()) returning id`,
  )
  const id = row!.id as number
  const files = COLLECTION_DEPENDENTS[0]!
  await query(
    `insert into rag_file (collection_id, source, sha256, byte_size, format, analysis, chunk_count, dictionary)
     select $1, 's' || n, sha256(''), 1, 'text', 1, 1, 'english_stem' from generate_series(1, $2) n`,
    [id, MORE_THAN_A_BATCH],
  )
  await query(
    `insert into rag_chunk (file_id, ordinal, collection_id, number, content, start_offset, end_offset, start_line, end_line, terms,
       common_terms)
     select id, n, $2, id * 10000 + n, 'text', 0, 4, 1, 1, '{}', '{}' from (select id from rag_file limit 2) f, generate_series(0, $1) n`,
    [MORE_THAN_A_BATCH, id],
  )
  for (let n = 1; n > 0; ) {
    const before = await Promise.all(tablesOf(files).map((table) => count(table)))
    await db.transaction(async (tx) => {
      n = (await tx.one(purgeRows(files, id))).count
      const unlocked = await Promise.all(tablesOf(files).map(countUnlocked))
      for (const i of [0, 1]) assert.ok(before[i]! - unlocked[i]! <= files.max!)
    })
  }
  assert.deepEqual(await Promise.all(tablesOf(files).map((table) => count(table))), [0, 0])
})
