import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noop } from '../../tasks/system/noop.task.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { startProcess } from '../service.ts'
import { withClient } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'

/** A worker is killed while it runs hundreds of jobs of a flood. */

const JOBS = 4000
const CHUNK = 1000

const { url, db, query } = await createTestDatabase()
const startWorker = () => startProcess('worker', url, { WORKER_QUEUES: 'system', ...SHORT_LEASE })
const countJobs = async (where: string): Promise<number> => {
  const [row] = await query(`select count(*)::int as n from job where name = 'system.noop' and (${where})`)
  return row!.n as number
}

test('restarts exactly the running jobs of a killed worker', async (t) => {
  for (let from = 0; from < JOBS; from += CHUNK) {
    const payloads = Array.from({ length: CHUNK }, (_, i) => ({ echo: `${from + i}` }))
    await db.transaction((tx) =>
      enqueueMany(tx, noop, payloads, { ownerId: null, settings: createJobSettings(3) }),
    )
  }
  // No job can end while this lock is held, so claimed jobs keep running.
  await query(`
    create function wait_turn() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(77); return null; end $$;
    create trigger wait_turn before update of finished_at on job for each statement execute function wait_turn()`)
  await withClient(url, async (client) => {
    await client.query('select pg_advisory_lock(77)')
    const doomed = await startWorker()
    await until('all slots are busy', async () => (await countJobs(`status = 'running'`)) >= 1500)
    await doomed.kill()
  })
  const doneBefore = await countJobs(`status = 'done'`)

  await startWorker()
  await until('all jobs are done', async () => (await countJobs(`status <> 'done'`)) === 0)
  const again = await countJobs('attempt > 1')
  t.diagnostic(`${doneBefore} were done, ${again} ran again`)
  assert.ok(again > 0 && again <= JOBS - doneBefore)
  assert.equal(await countJobs(`attempt > 2 or tries <> 1 or interruptions <> attempt - 1`), 0)
  assert.equal(await countJobs(`result ->> 'echo' is distinct from payload ->> 'echo'`), 0)
  assert.equal(
    await countJobs(`seq <> 2 * attempt or started_at is null or started_at > finished_at
      or seq <> (select count(*) from job_event where job_id = job.id)`),
    0,
    'every beginning and every end has its event',
  )
})
