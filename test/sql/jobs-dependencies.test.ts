import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cancelJobs, type JobSpec, readDependencies } from '../../sql/jobs/jobs.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields, withClient } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, url, query } = database
const ledger = createLedgerHelp(database)
const lease = await ledger.lease()

/** Adds a job that depends on others. */
async function addAfter(after: readonly string[], fields: JobFields = {}) {
  const job = buildJobSpec({ after, after_outcome: 'done', ...fields })
  await ledger.enqueue(job)
  return job
}

/** Adds a job in a transaction that commits when `work` waits for it. Returns the result of `work`. */
const addDuring = <T>(job: JobSpec, work: () => Promise<T>): Promise<T> =>
  withClient(url, async (client) => {
    await client.query('begin')
    await client.query('select job_enqueue($1::jsonb)', [JSON.stringify([job])])
    const worked = work()
    await waitForLock(query)
    await client.query('commit')
    return worked
  })

const count = async (queue: string) =>
  (
    await query(
      'select sum(queued)::int as queued, sum(running)::int as running, sum(waiting)::int as waiting from job_count where queue = $1',
      [queue],
    )
  )[0]

describe('a job that depends on others', () => {
  test('waits until all of them have ended, and begins at once then', async () => {
    const [first, second] = [await ledger.running({}, lease), await ledger.running({}, lease)]
    const job = await addAfter([first.id, second.id])
    assert.equal(await ledger.status(job.id), 'waiting')
    assert.deepEqual(await ledger.deliveries(job.id), [])
    assert.equal(await ledger.claim(job.id, lease), null)

    assert.deepEqual(await ledger.finish({ ...first, outcome: 'done' }), [first.id])
    assert.equal(await ledger.status(job.id), 'waiting')
    assert.deepEqual((await ledger.finish({ ...second, outcome: 'done' })).sort(), [job.id, second.id].sort())
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('reads their outcomes in the order of the request', async () => {
    const [first, second] = [await ledger.running({}, lease), await ledger.running({}, lease)]
    const job = await addAfter([second.id, first.id], { after_outcome: 'any' })
    await ledger.finish({ ...first, outcome: 'done', result: { n: 1 } })
    await ledger.finish({ ...second, outcome: 'failed', code: 'task.chosen_failure', detail: 'As asked' })
    const expected = [
      {
        job_id: second.id,
        status: 'failed',
        result: null,
        error: { code: 'task.chosen_failure', detail: 'As asked' },
      },
      { job_id: first.id, status: 'done', result: { n: 1 }, error: null },
    ]
    assert.deepEqual((await db.one(readDependencies(job.id))).results, expected)
  })

  for (const outcome of ['failed', 'cancelled'] as const)
    test(`is cancelled if one of them has ${outcome}, with the code job.dependency_failed`, async () => {
      const [first, second] = [await ledger.running({}, lease), await ledger.running({}, lease)]
      const job = await addAfter([first.id, second.id])
      await ledger.finish({ ...first, outcome })
      const row = await ledger.row(job.id)
      assert.deepEqual([row.status, row.error_code], ['cancelled', 'job.dependency_failed'])
      assert.ok(row.error_detail!.includes(first.id), row.error_detail!)
      await ledger.assertSound(job.id)
      await ledger.finish({ ...second, outcome: 'done' })
      assert.equal(await ledger.status(job.id), 'cancelled')
    })

  test('begins with `any` whatever the outcomes are', async () => {
    const first = await ledger.running({}, lease)
    const job = await addAfter([first.id], { after_outcome: 'any' })
    await ledger.finish({ ...first, outcome: 'failed' })
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('is not affected by a retry, a release or an interruption', async () => {
    const first = await ledger.running({}, lease)
    const job = await addAfter([first.id])
    for (const outcome of ['retry', 'release', 'interrupted'] as const) {
      const { attempt } = await ledger.row(first.id)
      await ledger.finish({ id: first.id, attempt, outcome })
      assert.equal(await ledger.status(job.id), 'waiting')
      await ledger.claim(first.id, lease)
    }
  })

  test('begins at its time if that comes later', async () => {
    const first = await ledger.running({}, lease)
    const job = await addAfter([first.id], { delay_ms: 60_000 })
    await ledger.finish({ ...first, outcome: 'done' })
    assert.equal(await ledger.status(job.id), 'scheduled')
    await ledger.makeDue(job.id)
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('counts as waiting', async () => {
    const queue = 'counted'
    const first = await ledger.running({ queue }, lease)
    const job = await addAfter([first.id], { queue })
    assert.deepEqual(await count(queue), { queued: 0, running: 1, waiting: 1 })
    await ledger.finish({ ...first, outcome: 'done' })
    assert.deepEqual(await count(queue), { queued: 1, running: 0, waiting: 0 })
    const other = await addAfter([job.id], { queue })
    await db.any(cancelJobs([job.id]))
    assert.equal(await ledger.status(other.id), 'cancelled')
    assert.deepEqual(await count(queue), { queued: 0, running: 0, waiting: 0 })
  })

  test('of a job that has ended begins at once, or is cancelled', async () => {
    const [good, bad] = [await ledger.running({}, lease), await ledger.running({}, lease)]
    await ledger.finish({ ...good, outcome: 'done' }, { ...bad, outcome: 'failed' })
    assert.equal(await ledger.state((await addAfter([good.id])).id), 'delivered')
    const cancelled = await addAfter([good.id, bad.id])
    assert.equal(await ledger.status(cancelled.id), 'cancelled')
    assert.equal(await ledger.state((await addAfter([bad.id], { after_outcome: 'any' })).id), 'delivered')
  })

  test('of a deleted job is refused', async () => {
    await assert.rejects(addAfter(['01a20118-fbcc-738c-80ed-00058e0e401d']), { code: 'job.missing' })
  })

  test('waits for a job whose end is being committed, and never misses it', async () => {
    const first = await ledger.running({}, lease)
    const job = buildJobSpec({ after: [first.id], after_outcome: 'done' })
    await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select job_finish($1::jsonb, 2, 8)', [
        JSON.stringify([{ id: first.id, attempt: first.attempt, outcome: 'done' }]),
      ])
      const added = ledger.enqueue(job)
      await waitForLock(query)
      await client.query('commit')
      await added
    })
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('starts after their ends, even if its claim began before', async () => {
    const first = await ledger.running({}, lease)
    const job = await addAfter([first.id])
    await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select now()')
      await ledger.finish({ ...first, outcome: 'done' })
      const { name, mailbox, ordinal } = await ledger.row(job.id)
      await client.query('select job_claim($1, $2, $3, $4::int[], $5, $6)', [
        lease,
        [name],
        [mailbox],
        [null],
        [ordinal],
        [1],
      ])
      await client.query('commit')
    })
    const [times] = await query(
      `select later.started_at >= before.finished_at as ordered from job later, job before where later.id = $1 and before.id = $2`,
      [job.id, first.id],
    )
    assert.deepEqual(times, { ordered: true })
  })

  test('is cancelled although it is added while the job before it is cancelled for the same reason', async () => {
    const first = await ledger.running({}, lease)
    const second = await addAfter([first.id])
    const job = buildJobSpec({ after: [second.id], after_outcome: 'done' })
    const changed = await addDuring(job, () => ledger.finish({ ...first, outcome: 'failed' }))
    assert.deepEqual(changed.sort(), [first.id, second.id, job.id].sort())
    assert.equal(await ledger.status(second.id), 'cancelled')
    assert.equal(await ledger.status(job.id), 'cancelled')
    assert.equal((await ledger.row(job.id)).error_code, 'job.dependency_failed')
  })

  test('is found by an end that waited for its addition', async () => {
    const first = await ledger.running({}, lease)
    const job = buildJobSpec({ after: [first.id], after_outcome: 'done' })
    await addDuring(job, () => ledger.finish({ ...first, outcome: 'done' }))
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('of an actor becomes due, and is available after the next look of the scheduler', async () => {
    const first = await ledger.running({}, lease)
    const job = await addAfter([first.id], { actor: 'dependant' })
    await ledger.finish({ ...first, outcome: 'done' })
    assert.equal(await ledger.status(job.id), 'scheduled')
    await ledger.makeDue(job.id)
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('of the same actor is available at once', async () => {
    const first = await ledger.running({ actor: 'pipeline' }, lease)
    const job = await addAfter([first.id], { actor: 'pipeline' })
    await ledger.finish({ ...first, outcome: 'done' })
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('of an account is cancelled if the job of another account goes with that', async () => {
    const [account] = await query(
      `insert into account (email, password_hash) values ('gone@example.com', 'x') returning id`,
    )
    const first = await ledger.running({ owner_id: account!.id as number }, lease)
    const job = await addAfter([first.id])
    await query('delete from job where owner_id = $1', [account!.id])
    assert.equal(await ledger.status(job.id), 'cancelled')
  })
})

describe('a chain of dependencies', () => {
  test('is cancelled as a whole with its first job, each naming its own dependency', async () => {
    const first = await ledger.running({}, lease)
    const second = await addAfter([first.id])
    const third = await addAfter([second.id])
    const always = await addAfter([second.id], { after_outcome: 'any' })
    const last = await addAfter([third.id, always.id], { after_outcome: 'any' })
    assert.deepEqual(
      (await db.any(cancelJobs([second.id]))).map(({ id }) => id).sort(),
      [second.id, third.id, always.id].sort(),
    )
    assert.deepEqual(await Promise.all([second, third].map(({ id }) => ledger.status(id))), [
      'cancelled',
      'cancelled',
    ])
    assert.equal((await ledger.row(second.id)).error_code, null)
    assert.ok((await ledger.row(third.id)).error_detail!.includes(second.id))
    assert.equal(await ledger.state(always.id), 'delivered')
    assert.equal(await ledger.status(last.id), 'waiting')
    await db.any(cancelJobs([always.id]))
    assert.equal(await ledger.state(last.id), 'delivered')
  })

  test('of one request is added at once, and runs in order', async () => {
    const jobs = Array.from({ length: 4 }, () => buildJobSpec())
    const [a, b, c, d] = jobs as [(typeof jobs)[0], (typeof jobs)[0], (typeof jobs)[0], (typeof jobs)[0]]
    await ledger.enqueue(
      a!,
      { ...b!, after: [a!.id], after_outcome: 'done' },
      { ...c!, after: [a!.id], after_outcome: 'done' },
      { ...d!, after: [b!.id, c!.id], after_outcome: 'done' },
    )
    const states = () => Promise.all(jobs.map(({ id }) => ledger.status(id)))
    assert.deepEqual(await states(), ['available', 'waiting', 'waiting', 'waiting'])
    const run = async (id: string) =>
      ledger.finish({ id, attempt: (await ledger.claim(id, lease))!.attempt, outcome: 'done' })
    await run(a!.id)
    assert.deepEqual(await states(), ['done', 'available', 'available', 'waiting'])
    await run(b!.id)
    await run(c!.id)
    assert.deepEqual(await states(), ['done', 'done', 'done', 'available'])
  })

  test('of thousands is cancelled in one step', async () => {
    const jobs = Array.from({ length: 3000 }, () => buildJobSpec())
    const [first, ...others] = jobs
    await ledger.enqueue(
      first!,
      ...others.map((job, n) => ({ ...job, after: [jobs[n]!.id], after_outcome: 'done' as const })),
    )
    assert.equal((await db.any(cancelJobs([first!.id]))).length, jobs.length)
    const last = await ledger.row(jobs.at(-1)!.id)
    assert.deepEqual([last.status, last.error_code], ['cancelled', 'job.dependency_failed'])
    assert.ok(last.error_detail!.includes(jobs.at(-2)!.id))
  })

  test('of two ends that commit together counts both', async () => {
    const [first, second] = [await ledger.running({}, lease), await ledger.running({}, lease)]
    const job = await addAfter([first.id, second.id])
    await Promise.all([
      ledger.finish({ ...first, outcome: 'done' }),
      ledger.finish({ ...second, outcome: 'done' }),
    ])
    assert.equal(await ledger.state(job.id), 'delivered')
  })
})
