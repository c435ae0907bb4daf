import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import {
  findLostSchedules,
  listMessages,
  lockSchedule,
  readSchedule,
  readSchedules,
} from '../../sql/schedules/schedules.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertWriteByIndex, planRead, testReads } from './plans-help.ts'

const RETENTION = [3600, 604_800] as const

/** Statements of schedules use an index, among 5,000 schedules and their jobs. */

const { query, url } = await createTestDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 500) n`,
)
await query(
  `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, finished_at)
   select gen_random_uuid(), 'n', 'q', 1 + n % 500, 'm', '{}', 'done', 1, now() from generate_series(1, 5000) n`,
)
await query(
  `insert into job (id, name, queue, mailbox, mailbox_limit, payload, status, max_tries, run_at)
   select gen_random_uuid(), 'schedules.run', 'schedules', 'schedule:s' || n, 1, '{}', 'scheduled', 1, now() + interval '1 day'
   from generate_series(1, 5000) n`,
)
await query(
  `insert into schedule (id, owner_id, name, task_name, queue_type, args, every_seconds, time_zone, overlap, catch_up, next_at,
     last_job_id, last_run_at, created_at)
   select 's' || n, 1 + n % 500, 's', 't', 'q', '{}', 86400, 'UTC', 'skip', 'none', now() + (n - 100) * interval '1 min', id, now(),
     now() - n * interval '1 s'
   from (select id, row_number() over (order by id) as n from job where owner_id is not null) jobs`,
)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

testReads(client, [
  planRead('a schedule', readSchedule, 's1', 5, false, RETENTION),
  planRead('schedules of an account', readSchedules.own, RETENTION, 5, null, 0, 100),
  planRead('all schedules', readSchedules.all, RETENTION, null, null, 0, 100),
])

describe('these statements scan no table', () => {
  for (const [what, statement] of [
    ['the lock of a schedule', lockSchedule('s1', null)],
    ['the lock of a schedule for its owner', lockSchedule('s1', { ownerId: 2, isAdmin: false })],
    ['the search for lost messages', findLostSchedules(60_000, 1000)],
    ['the messages of a schedule', listMessages('s1')],
  ] as const)
    test(what, () => assertWriteByIndex(client, () => statement, 'schedule', 'job', 'account'))
})
