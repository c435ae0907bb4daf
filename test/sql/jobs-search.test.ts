import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import {
  chooseSource,
  type JobSelection,
  listSelectedIds,
  readFailures,
  readFoundJobs,
} from '../../sql/jobs/search.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'
import { assertListByIndex } from './plans-help.ts'

/** Ids hold the time of the process that made them. No selection or order depends on that clock. */

const database = await createTestDatabase()
const ledger = createLedgerHelp(database)
const reader = createReader({ url: database.url, applicationName: 'search' })
after(() => reader.close())

// The first id is from a process whose clock is years ahead, the second from one whose clock is years behind.
const ahead = buildJobSpec({ id: '0fffffff-0000-7000-8000-000000000001' })
const behind = buildJobSpec({ id: '00000000-0000-7000-8000-000000000001' })
const last = buildJobSpec()
for (const job of [ahead, behind, last]) await ledger.enqueue(job)

test('a bulk action selects all jobs that were added before it, in that order', async () => {
  const selection: JobSelection = {
    filter: {},
    states: ['scheduled', 'available', 'running'],
    before: last.id,
    unretried: false,
  }
  const list = async (after: string | null, max = 10) =>
    (await database.db.any(listSelectedIds(selection, after, max))).map(({ id }) => id)
  assert.deepEqual(await list(null), [ahead.id, behind.id])
  assert.deepEqual(
    [await list(null, 1), await list(ahead.id), await list(behind.id)],
    [[ahead.id], [behind.id], []],
  )
})

test('found jobs are sorted by the time of the database', async () => {
  const find = async (order: 'created_at' | '-created_at' | '-waited'): Promise<string[]> => {
    const [, jobs] = (await reader.text(readFoundJobs.all[order], ['{}', null, 50, [3600, 3600]]))!.split(
      '\n',
    )
    return (JSON.parse(jobs!) as { job_id: string }[]).map(({ job_id }) => job_id)
  }
  const added = [ahead.id, behind.id, last.id]
  assert.deepEqual(await find('created_at'), added)
  assert.deepEqual(await find('-created_at'), added.toReversed())
  assert.deepEqual(new Set(await find('-waited')), new Set(added))
})

test('a search of an owner, batch or key reads no jobs of others', async () => {
  const { query } = database
  await query(
    `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 2000) n`,
  )
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, finished_at, error_code, key)
     select gen_random_uuid(), 'n', 'q', 1 + (n % 2000 = 0)::int, 'm', '{}', status, 1, case when status <> 'available' then now() end,
       case when status = 'failed' then 'internal' end, 'k'
     from generate_series(1, 20000) n, lateral (select (array['done', 'failed', 'available'])[1 + n / 2000 % 3] as status) s`,
  )
  const [batch] = (await query(`select id from job where owner_id = 2 limit 1`)).map(({ id }) => String(id))
  await query(`update job set batch_id = $1 where owner_id = 2`, [batch])
  await vacuumAnalyze(query)
  const client = await connect({ url: database.url, applicationName: 'plans' })
  after(() => client.end())
  const filters = {
    owner: { owner_id: 2 },
    batch: { batch, owner_id: 2 },
    key: { key: 'k', owner_id: 2 },
  } as const
  for (const source of ['owner', 'batch', 'key'] as const)
    for (const [sort, statement] of Object.entries(readFoundJobs[source])) {
      assert.equal(chooseSource(filters[source]), source)
      const values = [JSON.stringify(filters[source]), null, 50, [1e6, 1e6]] as const
      const [, jobs] = (await reader.text(statement, values))!.split('\n')
      assert.ok((JSON.parse(jobs!) as object[]).length >= 6, `${source} ${sort}`)
      await assertListByIndex(client, statement, values, 300)
    }
  await assertListByIndex(client, readFailures.owner, ['{"owner_id":2}', 3600, [1e6, 1e6]], 300)
})
