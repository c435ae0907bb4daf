import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { cancelJobs, type JobSpec } from '../../sql/jobs/jobs.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { noop } from '../../tasks/system/noop.task.ts'
import { pruneExpired } from '../../tasks/system/prune.task.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from '../sql/ledger-help.ts'

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)

const runTask = (settings: Record<string, string> = {}, signal = new AbortController().signal) =>
  pruneExpired.run({ db, settings: parseSettings(settings), signal } as TaskContext, {})
const countRows = async (table: string): Promise<unknown> =>
  (await query(`select count(*)::int as n from ${table}`))[0]!.n

/** Adds `n` jobs that ended `age` seconds ago, with two events each. */
const addEndedJobs = (n: number, age: number, status = 'done') =>
  query(
    `with made as (insert into job (id, name, queue, mailbox, payload, status, max_tries, seq, finished_at, error_code)
       select gen_random_uuid(), 'n', 'q', 'n/0', '{}', $3, 1, 2, now() - make_interval(secs => $2), case when $3 = 'failed' then 'internal' end
       from generate_series(1, $1) returning id)
     insert into job_event_row (job_id, seq, kind, data) select id, s, 'status', '{}' from made, generate_series(1, 2) s`,
    [n, age, status],
  )

describe('prune', { concurrency: false }, () => {
  beforeEach(() =>
    query(
      'truncate account, session, refresh_token, login_failure, request_limit, job, job_event_row, blob, blob_chunk, job_dependency, start_rate, blog_upload, idempotency_key, document cascade',
    ),
  )

  test('does nothing without rows', async () => {
    assert.deepEqual(await runTask(), {
      jobs: 0,
      tokens: 0,
      limits: 0,
      keys: 0,
      imports: 0,
      tallies: 0,
      previews: 0,
      webhooks: 0,
      accounts: 0,
    })
  })

  test('removes ended jobs past their retention with their events, and no others', async () => {
    await addEndedJobs(2500, 100)
    await addEndedJobs(7, 5)
    await ledger.enqueue(buildJobSpec(), buildJobSpec({ actor: 'a' }), buildJobSpec({ actor: 'a' }))
    const job = await ledger.running()
    assert.equal((await runTask({ WORKER_KEEP_RESULT_SECONDS: '50' })).jobs, 2500)
    assert.deepEqual([await countRows('job'), await countRows('job_event_row')], [7 + 3 + 1, 14])
    assert.equal(await ledger.status(job.id), 'running')
    assert.equal((await runTask({ WORKER_KEEP_RESULT_SECONDS: '1' })).jobs, 7)
    assert.deepEqual([await countRows('job'), await countRows('job_event_row')], [4, 0])
  })

  test('keeps failed jobs longer, with their events', async () => {
    await addEndedJobs(3, 100)
    await addEndedJobs(2, 100, 'cancelled')
    await addEndedJobs(1500, 100, 'failed')
    await addEndedJobs(4, 300, 'failed')
    const settings = { WORKER_KEEP_RESULT_SECONDS: '50', WORKER_KEEP_FAILED_SECONDS: '200' }
    assert.equal((await runTask(settings)).jobs, 3 + 2 + 4)
    assert.deepEqual([await countRows('job'), await countRows('job_event_row')], [1500, 3000])
    assert.equal((await runTask({ ...settings, WORKER_KEEP_FAILED_SECONDS: '50' })).jobs, 1500)
  })

  test('keeps an ended job until the jobs that depend on it have ended', async () => {
    const first = await ledger.running()
    await ledger.finish({ ...first, outcome: 'done' })
    const [second, third] = [
      buildJobSpec({ after: [first.id], after_outcome: 'done' }),
      buildJobSpec({ after: [first.id], after_outcome: 'done', delay_ms: 60_000 }),
    ]
    await ledger.enqueue(second, third)
    const expire = () =>
      query(`update job set finished_at = now() - interval '1 day' where finished_at is not null`)
    await expire()
    assert.equal((await runTask()).jobs, 0)
    await db.any(cancelJobs([second.id]))
    await expire()
    assert.equal((await runTask()).jobs, 1, 'the second')
    await db.any(cancelJobs([third.id]))
    await expire()
    assert.equal((await runTask()).jobs, 2)
    assert.equal(await countRows('job_dependency'), 0)
  })

  test('keeps the jobs of a batch until the batch expires', async () => {
    const batch = buildJobSpec({ is_batch: true, payload: { is_open: true } })
    const member = buildJobSpec({ batch_id: batch.id })
    await ledger.enqueue(batch, member)
    await db.any(cancelJobs([member.id]))
    const expire = () =>
      query(`update job set finished_at = now() - interval '1 day' where finished_at is not null`)
    await expire()
    assert.equal((await runTask()).jobs, 0)
    await db.any(cancelJobs([batch.id]))
    assert.equal((await runTask()).jobs, 0)
    await expire()
    assert.equal((await runTask()).jobs, 2)
  })

  test('removes rates that were unused for an hour and whose mailbox has no live job', async () => {
    const rate = { starts: 1, seconds: 1, burst: 1 }
    const add = (mailbox: string, fields: Partial<JobSpec> = {}) => {
      const spec = buildJobSpec({ mailbox, mailbox_limit: 1, rate, ...fields })
      return ledger.enqueue(spec).then(() => spec.id)
    }
    const [ended] = [await add('ended'), await add('fresh'), await add('available')]
    await add('scheduled', { delay_ms: 60_000 })
    await add('waiting', { after: [ended!], after_outcome: 'any' })
    const fresh = await add('fresh')
    await db.any(cancelJobs([fresh]))
    await query(`update start_rate set next_at = now() - interval '61 min' where name <> 'fresh'`)
    assert.equal((await runTask()).limits, 0)
    await db.any(cancelJobs([ended!]))
    await query(`update start_rate set next_at = now() - interval '61 min' where name <> 'fresh'`)
    await query(`update job set finished_at = now() where finished_at is not null`)
    assert.equal((await runTask()).limits, 1)
    assert.deepEqual(
      (await query('select name from start_rate order by name')).map(({ name }) => name),
      ['available', 'fresh', 'scheduled', 'waiting'],
    )
  })

  test('removes files of ended imports after a day', async () => {
    await query(
      `insert into blog_upload (file_name, format, created_at) select 'x', 'json', now() - n * interval '13 hours' from generate_series(1, 3) n`,
    )
    assert.equal((await runTask()).imports, 2)
    assert.equal(await countRows('blog_upload'), 1)
  })

  test('removes expired tokens, counts and keys', async () => {
    await query(`insert into account (email, password_hash) values ('a@example.com', 'x')`)
    await query(
      `insert into session (id, account_id) select gen_random_uuid(), id from account, generate_series(1, 3)`,
    )
    await query(`insert into refresh_token (digest, session_id, expires_at) select sha256(id::text::bytea), id,
      now() + case when row_number() over () = 1 then interval '1 h' else - interval '1 h' end from session`)
    await query(`insert into account_token (id, account_id, kind, digest, expires_at)
      select gen_random_uuid(), id, 'reset', sha256(n::text::bytea), now() + (1.5 - n) * interval '1 h' from account, generate_series(1, 3) n`)
    await query(`insert into passkey_challenge (challenge, expires_at)
      select sha256(n::text::bytea), now() + (1.5 - n) * interval '1 min' from generate_series(1, 3) n`)
    await query(`insert into oidc_login (digest, issuer, subject, expires_at)
      select sha256(n::text::bytea), 'i', 's', now() + (1.5 - n) * interval '1 min' from generate_series(1, 3) n`)
    await query(`insert into email_change (id, account_id, email, old_digest, new_digest, expires_at)
      select gen_random_uuid(), id, 'b@example.com', sha256('o'), sha256('n'), now() - interval '1 s' from account`)
    await query(`insert into login_failure (subject, failures, failed_at, locked_until) values
      (sha256('old'), 1, now() - interval '20 min', null), (sha256('new'), 1, now() - interval '10 min', null),
      (sha256('locked'), 5, now() - interval '20 min', now() + interval '1 min'), (sha256('free'), 5, now() - interval '20 min', now() - interval '1 min')`)
    await query(`insert into request_limit (name, subject, hits, expires_at)
      select 'login', n::text, '{}', now() + (1.5 - n) * interval '1 min' from generate_series(1, 3) n`)
    await query(`insert into idempotency_key (scope, key, fingerprint, status, body, created_at)
      select 's', n::text, '', 204, '', now() - n * interval '10 h' from generate_series(1, 4) n`)
    assert.deepEqual(await runTask(), {
      jobs: 0,
      tokens: 9,
      limits: 4,
      keys: 2,
      imports: 0,
      tallies: 0,
      previews: 0,
      webhooks: 0,
      accounts: 0,
    })
    const left = [
      'session',
      'refresh_token',
      'account_token',
      'login_failure',
      'request_limit',
      'passkey_challenge',
      'oidc_login',
    ]
    assert.deepEqual(await Promise.all(left.map(countRows)), [1, 1, 1, 2, 1, 1, 1])
    assert.equal(await countRows('idempotency_key'), 2)
  })

  test('adds a job for each due account, and none while one is live', async () => {
    await query(`insert into account (email, password_hash, deletion_at)
      select n || '@example.com', 'x', now() + (n - 1100.5) * interval '1 min' from generate_series(1, 1110) n`)
    assert.equal((await runTask()).accounts, 1100)
    assert.equal((await runTask()).accounts, 1100)
    const jobs =
      await query(`select owner_id, queue, mailbox_limit, count(*)::int as n, count(distinct mailbox)::int as accounts
      from job where name = 'accounts.delete' group by 1, 2, 3`)
    assert.deepEqual(jobs, [{ owner_id: null, queue: 'accounts', mailbox_limit: 1, n: 1100, accounts: 1100 }])
  })

  test('ends before the next batch when it is aborted', async () => {
    await addEndedJobs(1500, 10_000)
    const abort = new AbortController()
    abort.abort()
    const ends = runTask({}, abort.signal)
    await assert.rejects(ends, { name: 'AbortError' })
    assert.equal(await countRows('job'), 1500)
  })

  test('removes each job once in concurrent runs, without a deadlock', async () => {
    await addEndedJobs(3000, 10_000)
    const [one, two] = await Promise.all([runTask(), runTask()])
    assert.equal(one.jobs + two.jobs, 3000)
    assert.equal(await countRows('job_event_row'), 0)
  })

  test('runs every minute, one at a time', () => {
    const entry = scheduleEntries.find(({ identifier }) => identifier === 'prune')
    assert.deepEqual([entry?.match, entry?.task.name], ['* * * * *', 'system.prune'])
    assert.deepEqual([pruneExpired.actor?.({}, null), pruneExpired.whenBusy], ['prune', 'join'])
    assert.equal(new Set(scheduleEntries.map(({ identifier }) => identifier)).size, scheduleEntries.length)
  })

  test('deleting an account deletes its jobs and their events', async () => {
    await query(`insert into account (email, password_hash) values ('gone@example.com', 'x')`)
    const [account] = await query('select id from account')
    const owned = await ledger.running({ owner_id: account!.id as number })
    await ledger.finish({ ...owned, outcome: 'done' })
    await query('delete from account')
    await runTask()
    assert.deepEqual([await countRows('job'), await countRows('job_event_row')], [0, 0])
  })
})

test('noop returns its input', async () => {
  const payload = noop.payload.parse({ echo: 'x' })
  assert.deepEqual(noop.result.parse(await noop.run({} as TaskContext, payload)), { echo: 'x' })
  assert.deepEqual(noop.payload.parse({}), { echo: '' })
  assert.equal(noop.payload.safeParse({ echo: 1 }).success, false)
})
