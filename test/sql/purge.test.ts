import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { ACCOUNT_DEPENDENTS, type DependentRows, PURGE_BATCH, purgeRows } from '../../sql/retention/purge.ts'
import { type Progress, runPurge } from '../purge.ts'
import { createPurgeDatabase, MORE_THAN_A_BATCH, MORE_THAN_A_SMALL_BATCH, tablesOf } from './purge-help.ts'

/** A purge deletes the rows of a deleted account in batches. */

const { db, other, account, count, countUnlocked } = await createPurgeDatabase()
const countRowsOf = ({ max }: DependentRows): number =>
  max === undefined ? MORE_THAN_A_BATCH : MORE_THAN_A_SMALL_BATCH

describe('locks at most a batch of each table at a time', () => {
  let id = 0
  before(async () => {
    id = await account(MORE_THAN_A_BATCH, MORE_THAN_A_SMALL_BATCH)
  })

  // Tables are purged one after the other, in the task's order.
  for (const some of ACCOUNT_DEPENDENTS)
    test(some.label, async () => {
      const max = some.max ?? PURGE_BATCH
      const all = await count(some.table)
      assert.equal(await count(`${some.table} where ${some.referenceColumn} = ${id}`), countRowsOf(some))
      for (const table of tablesOf(some)) assert.ok((await count(table)) > max, table)
      for (let n = 1; n > 0; ) {
        const before = await Promise.all(tablesOf(some).map((table) => count(table)))
        await db.transaction(async (tx) => {
          n = (await tx.one(purgeRows(some, id))).count
          const unlocked = await Promise.all(tablesOf(some).map(countUnlocked))
          for (const [i, table] of tablesOf(some).entries())
            assert.ok(before[i]! - unlocked[i]! <= max, `${table}: ${before[i]} - ${unlocked[i]}`)
        })
        assert.ok(n <= 2 * max)
      }
      assert.equal(await count(`${some.table} where ${some.referenceColumn} = ${id}`), 0)
      if (some.clearsReference) assert.equal(await count(some.table), all)
      else
        assert.deepEqual(
          await Promise.all(tablesOf(some).map((table) => count(table))),
          tablesOf(some).map(() => 0),
        )
    })
})

describe('the rows of a deleted account', () => {
  test('are all deleted, with the account, but not those of another account', async () => {
    const seen: Progress[] = []
    const [id, neighbour] = [await account(MORE_THAN_A_BATCH, MORE_THAN_A_SMALL_BATCH), await account(3)]
    await db.one(deleteAccount(id))
    assert.equal(await count(`document where owner_id = ${id}`), MORE_THAN_A_BATCH)
    const done = await runPurge(db, seen)
    assert.deepEqual([done.accounts, done.organizations], [1, 0])
    assert.equal(await count(`account where id = ${id}`), 0)
    for (const { table, referenceColumn } of ACCOUNT_DEPENDENTS)
      assert.deepEqual(
        [
          await count(`${table} where ${referenceColumn} = ${id}`),
          await count(`${table} where ${referenceColumn} = ${neighbour}`),
        ],
        [0, 3],
        table,
      )
    assert.equal(
      await count(`blog_post where author_id is null and author_name = 'Ann' and slug like 'p-${id}-%'`),
      MORE_THAN_A_SMALL_BATCH,
    )
    assert.equal(
      await count(`payment_customer where provider_customer_id = 'cus_${id}' and user_id is null`),
      1,
    )
    assert.deepEqual(
      [...new Set(seen.map(([label]) => label))],
      ACCOUNT_DEPENDENTS.map(({ label }) => `Account ${id}: ${label}`),
    )
    const rows = seen.filter(([label]) => label.endsWith(': documents')).map(([, current]) => current!)
    assert.ok(rows.length > 3 && rows.every((n, i) => i === 0 || n > rows[i - 1]!), `${rows}`)
  })

  test('are also deleted if the job is killed between batches, by the next run', async () => {
    const id = await account(MORE_THAN_A_BATCH, MORE_THAN_A_SMALL_BATCH)
    await db.one(deleteAccount(id))
    for (let kills = 1; ; kills++) {
      const stop = new AbortController()
      const seen: Progress[] = []
      seen.push = (one) => {
        if (Array.prototype.push.call(seen, one) === kills % 7) stop.abort()
        return seen.length
      }
      const left = await count(`document where owner_id = ${id}`)
      if (
        await runPurge(db, seen, stop.signal).then(
          () => true,
          () => false,
        )
      )
        break
      assert.ok((await count(`document where owner_id = ${id}`)) <= left)
      assert.equal(await count(`account where id = ${id}`), 1)
    }
    assert.equal(await count(`account where id = ${id}`), 0)
    assert.equal(await count(`document where owner_id = ${id}`), 0)
  })

  test('are skipped while locked by others, and deleted with the account', async () => {
    const id = await account(3)
    await db.one(deleteAccount(id))
    await other.query('begin')
    await other.query(`select from document where owner_id = ${id} order by id limit 1 for update`)
    const documents = ACCOUNT_DEPENDENTS.find(({ table }) => table === 'document')!
    for (let n = 1; n > 0; ) n = (await db.one(purgeRows(documents, id))).count
    assert.equal(await count(`document where owner_id = ${id}`), 1)
    const ended = runPurge(db)
    await other.query('commit')
    assert.equal((await ended).accounts, 1)
    assert.equal(await count(`document where owner_id = ${id}`), 0)
  })
})
