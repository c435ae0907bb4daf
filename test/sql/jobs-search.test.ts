import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type JobSelection, listSelectedIds, readFoundJobs } from '../../sql/jobs/search.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

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
    const [, jobs] = (await reader.text(readFoundJobs[order], ['{}', null, 50]))!.split('\n')
    return (JSON.parse(jobs!) as { job_id: string }[]).map(({ job_id }) => job_id)
  }
  const added = [ahead.id, behind.id, last.id]
  assert.deepEqual(await find('created_at'), added)
  assert.deepEqual(await find('-created_at'), added.toReversed())
  assert.deepEqual(new Set(await find('-waited')), new Set(added))
})
