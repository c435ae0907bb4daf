import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { JOB_EVENTS_CHANNEL, listen } from '../../sql/connections/notify.ts'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
import { cancelJobs, fenceJob } from '../../sql/jobs/jobs.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { until } from '../until.ts'
import { buildJobSpec, createLedgerHelp, storeProgress, withClient } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, query, url } = database
const ledger = createLedgerHelp(database)
const lease = await ledger.lease()
const other = await ledger.lease()

describe('job_claim', () => {
  test('claims the job for the lease, and returns everything that its run needs', async () => {
    const job = buildJobSpec({ payload: { page: 3 }, max_tries: 7, actor: 'a1', request_id: 'r1' })
    await ledger.enqueue(job)
    const { waited, ...claimed } = (await ledger.claim(job.id, lease))!
    assert.ok(waited >= 0 && waited < 60, `waited ${waited} s`)
    assert.deepEqual(claimed, {
      id: job.id,
      name: 'test.task',
      payload: '{"page": 3}',
      attempt: 1,
      tries: 1,
      max_tries: 7,
      owner_id: null,
      mailbox: 'a1',
      mailbox_limit: 1,
      request_id: 'r1',
      interruptions: 0,
      trace_parent: null,
      seq: 1,
    })
    const row = await ledger.row(job.id)
    assert.equal(row.status, 'running')
    assert.equal(row.lease_id, lease)
    assert.ok(row.started_at !== null)
    assert.deepEqual(await ledger.events(job.id), [
      { seq: 1, kind: 'status', data: { status: 'running', label: '', current: null, total: null } },
    ])
  })

  test('returns the trace of a job, and its waiting time', async () => {
    const trace_parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    for (const actor of [null, 'traced']) {
      const job = buildJobSpec({ actor, trace_parent })
      await ledger.enqueue(job)
      await query(`update job set run_at = run_at - interval '5 s' where id = $1`, [job.id])
      const claimed = await ledger.claim(job.id, lease)
      assert.equal(claimed?.trace_parent, trace_parent)
      assert.ok(claimed.waited >= 5 && claimed.waited < 65, String(claimed.waited))
    }
  })

  test('does not claim a running, cancelled, ended or deleted job', async () => {
    const [running, cancelled, gone] = [buildJobSpec(), buildJobSpec(), buildJobSpec()]
    await ledger.enqueue(running, cancelled, gone)
    const deliveries = await ledger.deliveries(running.id, cancelled.id, gone.id)
    assert.equal(deliveries.length, 3)
    await ledger.claim(running.id, lease)
    await db.any(cancelJobs([cancelled.id]))
    await query('delete from job where id = $1', [gone.id])
    const claim = () => ledger.claimMany(other, ...deliveries.map((delivery) => ({ delivery, freeSlots: 5 })))
    assert.deepEqual(await claim(), [])
    await ledger.finish({ id: running.id, attempt: 1, outcome: 'done' })
    assert.deepEqual(await claim(), [])
    assert.deepEqual(
      await ledger.deliveries(running.id, cancelled.id),
      deliveries.slice(0, 2),
      'nothing is sent',
    )
  })

  test('a stale delivery claims the job that waits now', async () => {
    const job = buildJobSpec()
    await ledger.enqueue(job)
    const [delivery] = await ledger.deliveries(job.id)
    await ledger.claim(job.id, lease)
    await ledger.finish({ id: job.id, attempt: 1, outcome: 'release' })
    const [claimed] = await ledger.claimMany(other, { delivery: delivery!, freeSlots: 1 })
    assert.deepEqual([claimed!.id, claimed!.attempt, claimed!.tries], [job.id, 2, 1])
    assert.deepEqual(await ledger.finish({ id: job.id, attempt: 1, outcome: 'done' }), [])
    assert.deepEqual(await ledger.finish({ id: job.id, attempt: 2, outcome: 'done' }), [job.id])
    await ledger.assertSound(job.id)
  })

  test('one of many concurrent claims wins', async () => {
    const job = buildJobSpec()
    await ledger.enqueue(job)
    const leases = await Promise.all(Array.from({ length: 20 }, () => ledger.lease()))
    const claims = await Promise.all(leases.map((id) => ledger.claim(job.id, id)))
    assert.equal(claims.filter((claim) => claim !== null).length, 1)
    assert.equal((await ledger.row(job.id)).attempt, 1)
  })

  test('a missing lease claims nothing, and the delivery is not done', async () => {
    const job = buildJobSpec()
    await ledger.enqueue(job)
    const gone = await ledger.lease()
    await query('delete from worker_lease where id = $1', [gone])
    const [delivery, ...others] = await ledger.deliveries(job.id)
    const { claims, again } = await db.one(claimJobs(gone, [{ delivery: delivery!, freeSlots: 1 }]))
    assert.deepEqual([claims, again, others], [null, [delivery!.mailbox], []])
    assert.ok(await ledger.claim(job.id, lease))
  })

  test('claims jobs of many deliveries in one call, in the order of each mailbox', async () => {
    const jobs = Array.from({ length: 30 }, (_, i) => buildJobSpec({ mailbox: `many/${i % 3}` }))
    await ledger.enqueue(...jobs)
    const deliveries = await ledger.deliveries(...jobs.map(({ id }) => id))
    assert.equal(deliveries.length, 3)
    const claimed = await ledger.claimMany(
      lease,
      ...deliveries.map((delivery) => ({ delivery, freeSlots: 10 })),
    )
    assert.deepEqual(
      claimed.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
  })
})

// Another transaction locks the job's row in order to write about the job, or to handle a late end of an attempt.
describe('the row of a waiting job is locked by another transaction', () => {
  const whileLocked = <T>(id: string, lock: string, work: () => Promise<T>): Promise<T> =>
    withClient(url, async (client) => {
      await client.query('begin')
      await client.query(`select from job where id = $1 for ${lock}`, [id])
      const result = await work()
      await client.query('rollback')
      return result
    })
  /** Claims a job as a worker does, with its only delivery. Returns the ids, or null if the delivery is not done. */
  const claimAll = async (id: string) => {
    const deliveries = await ledger.deliveries(id)
    assert.equal(deliveries.length, 1)
    const { claims, again } = await db.one(claimJobs(lease, [{ delivery: deliveries[0]!, freeSlots: 5 }]))
    if (again.length > 0) return null
    await query('delete from graphile_worker._private_jobs where id = $1', [deliveries[0]!.row])
    return parseClaims({ claims }).map((one) => one.id)
  }
  const redeliver = async (actor: string | null) => {
    const job = await ledger.running({ actor }, lease)
    await query(`delete from graphile_worker._private_jobs where payload ->> 'mailbox' = $1`, [
      (await ledger.row(job.id)).mailbox,
    ])
    await ledger.finish({ ...job, outcome: 'release' })
    return job.id
  }

  test('the delivery of a released job is not done until it claims the job', async () => {
    const id = await redeliver(null)
    assert.equal(await whileLocked(id, 'share', () => claimAll(id)), null)
    assert.deepEqual(await claimAll(id), [id])
  })

  test('its delivery is not done, nor is that of another task whose mailbox is locked', async () => {
    const other = buildJobSpec({ actor: 'busy' })
    const job = buildJobSpec({ name: 'test.other' })
    await ledger.enqueue(other, job)
    const [ofOther, ofJob] = await ledger.deliveries(other.id, job.id)
    const { again } = await withClient(url, async (client) => {
      await client.query('begin')
      await client.query(`select mailbox_lock(array['busy'])`)
      await client.query('select from job where id = $1 for share', [job.id])
      return db.one(
        claimJobs(lease, [
          { delivery: ofOther!, freeSlots: 1 },
          { delivery: ofJob!, freeSlots: 1 },
        ]),
      )
    })
    assert.deepEqual(again.toSorted(), ['busy', ofJob!.mailbox].toSorted())
    assert.equal((await ledger.deliveries(job.id)).length, 1)
  })

  test('no later message of its actor overtakes the job', async () => {
    const id = await redeliver('locked')
    await ledger.enqueue(buildJobSpec({ actor: 'locked' }))
    assert.equal(await whileLocked(id, 'share', () => claimAll(id)), null)
    assert.deepEqual(await claimAll(id), [id])
  })

  test('writing log lines and references does not prevent the claim', async () => {
    const id = await redeliver(null)
    assert.deepEqual(await whileLocked(id, 'key share', () => claimAll(id)), [id])
  })
})

test('a notifying claim sends the events of its jobs, and nothing without any', async () => {
  const received: string[] = []
  const listener = await listen({
    url,
    applicationName: 'claim-test',
    channels: { [JOB_EVENTS_CHANNEL]: (payload) => void received.push(payload) },
    onReconnect: () => {},
    onError: () => {},
  })
  const [first, second] = [buildJobSpec(), buildJobSpec()]
  await ledger.enqueue(first, second)
  await until('the added jobs are announced', () => received.splice(0).length > 0)
  const wanted = (await ledger.deliveries(first.id, second.id)).map((delivery) => ({
    delivery,
    freeSlots: 1,
  }))
  const claim = async () => parseClaims(await db.one(claimJobs(lease, wanted, true)))
  assert.deepEqual(
    (await claim()).map(({ id }) => id),
    [first.id, second.id],
  )
  assert.deepEqual(await claim(), [])
  await until('the notification arrives', () => received.length > 0)
  await listener.close()
  assert.deepEqual(
    received.map((payload) => payload.split('\n').map((line) => line.split('\t').slice(0, 4))),
    [[first.id, second.id].map((id) => [id, '1', 'status', 'running'])],
  )
})

describe('job_progress', () => {
  test('updates the row, and keeps the order of events of one job', async () => {
    const { id, attempt } = await ledger.running({}, lease)
    const stored = await ledger.progress(
      id,
      attempt,
      { n: 1, data: { status: 'running', label: 'one', current: 1, total: 3 } },
      { n: 2, kind: 'note', data: { text: 'aside' } },
      { n: 3, data: { status: 'running', label: 'two', current: 2, total: 3 } },
      { n: 4, kind: 'note', data: ['any', null, 'JSON'] },
    )
    assert.deepEqual(stored, [id])
    const row = await ledger.row(id)
    assert.deepEqual([row.label, row.progress_current, row.progress_total, row.seq], ['two', 2, 3, 5])
    const events = (await ledger.events(id)).slice(1)
    assert.deepEqual(
      events.map((event) => event.seq),
      [2, 3, 4, 5],
    )
    assert.deepEqual(
      events.map((event) => event.data.label ?? event.data),
      ['one', { text: 'aside' }, 'two', ['any', null, 'JSON']],
    )
  })

  test('stores events of many jobs with their jobs', async () => {
    const jobs = await Promise.all(Array.from({ length: 10 }, () => ledger.running({}, lease)))
    const entries = [1, 2, 3].flatMap((n) =>
      jobs.map(({ id, attempt }) => ({ id, attempt, n, kind: 'note', data: { n, id } })),
    )
    const stored = await db.any(storeProgress(entries))
    assert.deepEqual(stored.map((row) => row.id).sort(), jobs.map((job) => job.id).sort())
    for (const { id } of jobs) {
      assert.deepEqual(
        (await ledger.events(id)).slice(1).map((event) => event.data),
        [1, 2, 3].map((n) => ({ n, id })),
      )
      await ledger.assertSound(id)
    }
  })

  test('keeps label and progress without a status event, and clears them if it has none', async () => {
    const { id, attempt } = await ledger.running({}, lease)
    await ledger.progress(id, attempt, { n: 1, data: { label: 'here', current: 1, total: 2 } })
    await ledger.progress(id, attempt, { n: 2, kind: 'note', data: {} })
    assert.deepEqual([(await ledger.row(id)).label, (await ledger.row(id)).progress_total], ['here', 2])
    await ledger.progress(id, attempt, { n: 3, data: {} })
    assert.deepEqual([(await ledger.row(id)).label, (await ledger.row(id)).progress_total], ['', null])
  })

  test('stores a repeated call once, and confirms the running attempt', async () => {
    const { id, attempt } = await ledger.running({}, lease)
    const steps = [1, 2].map((n) => ({ n, kind: 'note', data: { n } }))
    assert.deepEqual(await ledger.progress(id, attempt, ...steps), [id])
    assert.deepEqual(await ledger.progress(id, attempt, ...steps), [id])
    assert.deepEqual(await ledger.progress(id, attempt, ...steps, { n: 3, kind: 'note', data: { n: 3 } }), [
      id,
    ])
    assert.deepEqual(
      (await ledger.events(id)).slice(1).map((event) => event.data),
      [{ n: 1 }, { n: 2 }, { n: 3 }],
    )
    await ledger.finish({ id, attempt, outcome: 'done' })
    assert.deepEqual(await ledger.progress(id, attempt, ...steps), [])
  })

  test('a repeated call waits for the standby: its transaction writes a record', async () => {
    const { id, attempt } = await ledger.running({}, lease)
    const entries = JSON.stringify([{ id, attempt, n: 1, kind: 'note', data: {} }])
    const writes = async () => {
      const [row] = await query(
        `select array(select id from job_progress($1::jsonb)) as stored, pg_current_xact_id_if_assigned() is not null as writes`,
        [entries],
      )
      return row
    }
    await ledger.progress(id, attempt, { n: 1, kind: 'note', data: {} })
    assert.deepEqual(await writes(), { stored: [id], writes: true })
    await ledger.finish({ id, attempt, outcome: 'done' })
    assert.deepEqual(await writes(), { stored: [], writes: false })
  })

  test('stores the same call once over many connections', async () => {
    const { id, attempt } = await ledger.running({}, lease)
    const steps = [1, 2, 3].map((n) => ({ n, kind: 'note', data: { n } }))
    await Promise.all(Array.from({ length: 8 }, () => ledger.progress(id, attempt, ...steps)))
    assert.deepEqual(
      (await ledger.events(id)).slice(1).map((event) => event.data),
      [{ n: 1 }, { n: 2 }, { n: 3 }],
    )
    await ledger.assertSound(id)
  })

  test('rejects a superseded attempt, and counts the next one from 1', async () => {
    const job = await ledger.running({}, lease)
    await ledger.progress(job.id, 1, { n: 5, data: { label: 'old', current: 5, total: 9 } })
    await ledger.finish({ ...job, outcome: 'release' })
    assert.deepEqual(await ledger.progress(job.id, 1, { n: 6, data: { label: 'nobody runs it' } }), [])
    await ledger.claim(job.id, other)
    assert.deepEqual(await ledger.progress(job.id, 1, { n: 6, data: { label: 'stale' } }), [])
    assert.equal((await ledger.row(job.id)).label, 'old')
    assert.deepEqual(
      await ledger.progress(job.id, 2, { n: 1, data: { label: 'new', current: 1, total: 9 } }),
      [job.id],
    )
    assert.equal((await ledger.row(job.id)).label, 'new')
    await ledger.assertSound(job.id)
  })

  test('a fence holds only for the running attempt, and delays a takeover', async () => {
    const job = await ledger.running({}, lease)
    assert.equal(await db.maybeOne(fenceJob(job.id, job.attempt + 1)), null)
    const lost = JSON.stringify([{ id: job.id, attempt: job.attempt, outcome: 'interrupted' }])
    let ended = false
    const { finishing } = await db.transaction(async (tx) => {
      assert.deepEqual(await tx.maybeOne(fenceJob(job.id, job.attempt)), { id: job.id })
      const finishing = query('select job_finish($1, 2, 5)', [lost]).then(() => {
        ended = true
      })
      await waitForLock(query)
      assert.equal(ended, false)
      return { finishing }
    })
    await finishing
    assert.equal(await db.maybeOne(fenceJob(job.id, job.attempt)), null)
  })

  test('progress, cancellation and the end do not wait for a fence, but deletion does', async () => {
    const job = await ledger.running({}, lease)
    const { deleting } = await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select job_fence($1, 1)', [job.id])
      const data = { label: 'Swapping', current: null, total: null }
      assert.deepEqual(await ledger.progress(job.id, 1, { n: 1, data }), [job.id])
      await db.any(cancelJobs([job.id]))
      assert.deepEqual(await ledger.finish({ ...job, outcome: 'done' }), [job.id])
      const deleting = query('delete from job where id = $1', [job.id])
      await waitForLock(query)
      await client.query('commit')
      return { deleting }
    })
    await deleting
  })
})
