import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { type Client, connect } from '../../sql/connections/driver.ts'
import { type Chance, createChance } from '../chance.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions } from '../runs.ts'
import { addRowToEachSum, findDifferences, runQuery, SUM_TABLES } from './sums-help.ts'
import { type Ids, LATEST_IDS, pickWrite } from './sums-writes.ts'

/** Stored sums equal those of the rows after any writes, however concurrent. */

const { query, url } = await createTestDatabase()
const CONCURRENCY = 6
const TRANSACTIONS_PER_CLIENT = 6
const clients = await Promise.all(
  Array.from({ length: CONCURRENCY }, () => connect({ url, applicationName: 'sums' })),
)
after(() => Promise.all(clients.map((client) => client.end())))

// Errors that roll back a transaction: refunds beyond the payment, duplicates, missing owners, deadlocks.
const EXPECTED_ERRORS = ['23514', '23505', '23503', '40P01']

const readLatestIds = async (): Promise<Ids> => {
  const [row] = await query(`select ${LATEST_IDS}`)
  return Object.fromEntries(Object.entries(row!).map(([table, ids]) => [table, ids ?? [1]])) as Ids
}

/** Runs some random transactions and returns the number that failed. Some roll back on purpose. */
async function runTransactions(client: Client, chance: Chance, ids: Ids): Promise<number> {
  let refused = 0
  for (let n = 0; n < TRANSACTIONS_PER_CLIENT; n++) {
    await client.query('begin')
    try {
      for (let each = chance.between(1, 3); each > 0; each--) await runQuery(client, pickWrite(chance, ids))
      await client.query(chance.isHit(0.2) ? 'rollback' : 'commit')
    } catch (error) {
      await client.query('rollback')
      if (!EXPECTED_ERRORS.includes((error as { code: string }).code)) throw error
      refused += 1
    }
  }
  return refused
}

test('stored sums equal those of the rows after any concurrent writes', async () => {
  const unseen = new Set(SUM_TABLES)
  let [begun, refused] = [0, 0]
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const ids = await readLatestIds()
      const all = await Promise.all(
        clients.map((client, i) => runTransactions(client, createChance(seed + i), ids)),
      )
      assert.deepEqual(await findDifferences(query), {})
      begun += CONCURRENCY * TRANSACTIONS_PER_CLIENT
      for (const n of all) refused += n
      for (const table of unseen)
        if ((await query(`select from ${table} limit 1`)).length > 0) unseen.delete(table)
    }),
    // The interleaving differs from run to run, so shrinking would find another example.
    { ...createRunOptions(25), endOnFailure: true, includeErrorInReport: true },
  )
  assert.deepEqual([...unseen], [], 'tables without any sum')
  assert.ok(refused < begun / 2, `${refused} of ${begun} transactions were refused`)
})

test('transactions that add to the same sums do not block each other, and a rollback leaves nothing', async () => {
  const [one, other] = [clients[0]!, clients[1]!]
  const readRows = async (): Promise<unknown[]> =>
    Promise.all(SUM_TABLES.map((table) => query(`select * from ${table} order by id`)))
  await addRowToEachSum(one)
  const before = await readRows()
  for (const client of [one, other]) {
    await client.query('begin')
    // Any wait for a lock fails the transaction.
    await client.query('set local lock_timeout = 1')
    await addRowToEachSum(client)
  }
  assert.deepEqual(await readRows(), before, 'others do not see uncommitted changes')
  await one.query('rollback')
  await other.query('commit')
  assert.notDeepEqual(await readRows(), before)
  assert.deepEqual(await findDifferences(query), {})
})

test('a sum is merged into one row by the next change, after any concurrent changes', async () => {
  const DAY = '2024-02-03T04:05:06Z'
  const keys = async (): Promise<unknown[]> =>
    query(`select user_id, count(*)::int as rows, sum(requests)::int as requests from ai_usage_sum
      where day = date '${DAY}' group by 1 order by 1`)
  const use = `insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, estimated, success, created_at)
    values ('few', 'chat', 'v', 'm', 1, 1, false, true, '${DAY}')`
  for (const client of clients) {
    await client.query('begin')
    await client.query(use)
  }
  for (const client of clients) await client.query('commit')
  assert.deepEqual(
    await keys(),
    ['', 'few'].map((user_id) => ({ user_id, rows: CONCURRENCY, requests: CONCURRENCY })),
  )
  await query(use)
  assert.deepEqual(
    await keys(),
    ['', 'few'].map((user_id) => ({ user_id, rows: 1, requests: CONCURRENCY + 1 })),
  )
  await query(`delete from ai_usage where user_id = 'few'`)
  assert.deepEqual(await keys(), [], 'a sum of nothing has no row')
})
