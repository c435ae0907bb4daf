import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { scheduleJobs } from '../../sql/jobs/jobs.ts'
import { readLiveIds, readQueueDepths } from '../../sql/jobs/lists.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

/** The waiting time of a queue is that of its oldest due job. */

const database = await createTestDatabase()
const help = createLedgerHelp(database)
const reader = createReader({ url: database.url, applicationName: 'waiting' })
after(() => reader.close())

const readWait = async (queue: string): Promise<number | null> => {
  const depths = JSON.parse((await reader.text(readQueueDepths, []))!) as {
    queue: string
    oldest_seconds: number | null
  }[]
  return depths.find((each) => each.queue === queue)!.oldest_seconds
}
const addMany = (queue: string) =>
  help.enqueue(...Array.from({ length: 150 }, () => buildJobSpec({ queue, delay_ms: 3_600_000 })))

test('a due job counts its waiting time, whatever scheduled job was added before it', async () => {
  await addMany('documents')
  assert.equal(await readWait('documents'), null)
  const [added] = await help.enqueue(buildJobSpec({ queue: 'documents' }))
  await database.query(
    `update job set created_at = created_at - interval '1 min', run_at = run_at - interval '1 min' where id = $1`,
    [added!.job_id],
  )
  const seconds = await readWait('documents')
  assert.ok(seconds !== null && seconds >= 60 && seconds < 300, `${seconds} s`)
})

test('a scheduled job counts its waiting time from its due time', async () => {
  await addMany('comms')
  const [added] = await help.enqueue(buildJobSpec({ queue: 'comms', delay_ms: 3_600_000 }))
  await database.query(
    `update job set created_at = now() - interval '1 hour', run_at = now() - interval '1 min' where id = $1`,
    [added!.job_id],
  )
  await database.db.one(scheduleJobs(9))
  const seconds = await readWait('comms')
  assert.ok(seconds !== null && seconds >= 60 && seconds < 300, `${seconds} s`)
})

test('live jobs are listed in the order of their insertion, whatever their due time', async () => {
  const rows = await database.query(
    `select id from job where status in ('scheduled', 'available') order by ordinal`,
  )
  const lines = await reader.texts(readLiveIds.all, [null, null, null])
  assert.deepEqual(
    lines,
    rows.map(({ id }) => id),
  )
})
