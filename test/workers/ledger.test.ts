import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { mapDatabaseError } from '../../sql/error-mapping.ts'
import { fail } from '../../sql/errors.ts'
import { type FinishEntry, type ProgressEntry, scheduleJobs } from '../../sql/jobs/jobs.ts'
import { buildJobSpec, withClient } from '../sql/ledger-help.ts'
import { createProgress, createWorkerLedger } from './ledger-parts.ts'

const { base, help, open, running, notes } = await createWorkerLedger()

describe('the worker ledger', () => {
  test('sends entries of one turn in one statement', async () => {
    const { ledger, named, marked } = open()
    const jobs = Array.from({ length: 40 }, () => buildJobSpec())
    await help.enqueue(...jobs)
    const claimed = await Promise.all((await help.deliveries()).map((delivery) => ledger.claim(delivery, 1)))
    assert.deepEqual(
      claimed.flatMap(({ jobs }) => jobs).map((job) => job.id),
      jobs.map((job) => job.id),
    )
    for (const { id } of jobs) for (const n of [1, 2, 3]) ledger.progress(createProgress(id, n))
    const ended = await Promise.all(
      jobs.map(({ id }, i) =>
        ledger.finish({
          id,
          attempt: 1,
          outcome: i % 4 === 0 ? 'cancelled' : 'done',
          result: `"${id}"`,
        }),
      ),
    )
    assert.ok(ended.every(Boolean))
    assert.deepEqual(
      ['job_claim', 'job_report'].map((name) => named(name).length),
      [1, 1],
    )
    assert.equal(new Set(marked).size, 40)
    for (const [i, { id }] of jobs.entries()) {
      assert.deepEqual(await notes(id), [1, 2, 3])
      assert.equal((await help.row(id)).result, i % 4 === 0 ? null : id)
      await help.assertSound(id)
    }
  })

  test('lets a report notify about its jobs when allowed', async () => {
    const { ledger, marked, named } = open(undefined, undefined, () => true)
    const [job] = await running(1)
    ledger.progress(createProgress(job!.id, 1))
    assert.equal(await ledger.finish({ ...job!, outcome: 'done' }), true)
    assert.deepEqual([named('job_report').length, marked], [1, []])
  })

  test('lets a claim notify about its jobs when allowed, or when it sends a delivery', async () => {
    const allowed = open(undefined, () => true)
    const refused = open()
    const mailbox = 'shared'
    const [alone, other, first, second] = [
      buildJobSpec(),
      buildJobSpec(),
      buildJobSpec({ mailbox }),
      buildJobSpec({ mailbox }),
    ]
    await help.enqueue(alone, other, first, second)
    await allowed.ledger.claim(await help.deliveryOf(alone.id), 1)
    assert.deepEqual([allowed.named('job_claim').length, allowed.marked], [1, []])
    await refused.ledger.claim(await help.deliveryOf(first.id), 1)
    assert.deepEqual(refused.marked, [], 'the second job has a delivery')
    await refused.ledger.claim(await help.deliveryOf(other.id), 1)
    assert.deepEqual([refused.marked, refused.afters], [[other.id], [0]])
  })

  test('notifies of progress with the number of the last event before it', async () => {
    const { ledger, afters } = open()
    const { id } = (await running(1))[0]!
    ledger.progress(createProgress(id, 1))
    await ledger.idle()
    ledger.progress(createProgress(id, 2))
    ledger.progress(createProgress(id, 3))
    await ledger.idle()
    assert.deepEqual([...new Set(afters)], [1, 2])
  })

  test('fails a claim without affecting other claims or the worker', async () => {
    const { ledger, db, named } = open()
    const jobs = [buildJobSpec(), buildJobSpec()]
    await help.enqueue(...jobs)
    const deliveries = await help.deliveries(...jobs.map(({ id }) => id))
    db.error = () =>
      Object.assign(new Error('index "job_pkey" contains unexpected zero page'), { code: 'XX002' })
    db.fault = () => (named('job_claim').length < 3 ? 'before' : null)
    const claimed = await Promise.all(deliveries.map((delivery) => ledger.claim(delivery, 1)))
    assert.deepEqual(
      claimed.map((each) => each.jobs.length),
      [0, 1],
    )
    await ledger.idle()
  })

  test('survives a delivery that cannot be returned', async () => {
    const { ledger, db } = open()
    const job = buildJobSpec()
    await help.enqueue(job)
    db.error = () => Object.assign(new Error('permission denied'), { code: '42501' })
    db.fault = () => 'before'
    await ledger.redeliver(await help.deliveryOf(job.id))
    await ledger.idle()
  })

  test('splits large batches without losing entries', async () => {
    const { ledger, named } = open()
    const [job] = await running(1)
    for (let n = 1; n <= 1234; n++) ledger.progress(createProgress(job!.id, n))
    await ledger.idle()
    assert.equal(named('job_report').length, 2)
    assert.deepEqual(
      await notes(job!.id),
      Array.from({ length: 1234 }, (_, i) => i + 1),
    )
  })

  test('stores progress before the end that follows it', async () => {
    const { ledger, db } = open()
    const jobs = await running(20)
    db.fault = (name) => (name === 'job_report' && db.calls.length < 3 ? 'before' : null)
    const ends = jobs.map(({ id }, i) => {
      for (let n = 1; n <= i; n++) ledger.progress(createProgress(id, n))
      return ledger.finish({ id, attempt: 1, outcome: 'done' })
    })
    assert.deepEqual(
      await Promise.all(ends),
      jobs.map(() => true),
    )
    for (const [i, { id }] of jobs.entries()) {
      assert.equal((await notes(id)).length, i)
      await help.assertSound(id)
    }
  })

  test('stores progress and ends of all jobs while one holds a fence', async () => {
    const { ledger } = open()
    const [slow, other] = await running(2)
    await withClient(base.url, async (client) => {
      await client.query('begin')
      await client.query('select job_fence($1, 1)', [slow!.id])
      ledger.progress(createProgress(slow!.id, 1))
      assert.equal(await ledger.finish({ ...other!, outcome: 'done' }), true)
      assert.deepEqual(await notes(slow!.id), [1])
      await client.query('commit')
    })
    assert.equal(await ledger.finish({ ...slow!, outcome: 'done' }), true)
    await help.assertSound(slow!.id)
  })

  test('delays entries during an outage, and loses none', async () => {
    const { ledger, db } = open()
    const jobs = await running(10)
    const waiting = buildJobSpec()
    await help.enqueue(waiting)
    let down = true
    db.fault = () => (down ? 'before' : null)
    for (const { id } of jobs) ledger.progress(createProgress(id, 1))
    const ends = Promise.all(jobs.map(({ id }) => ledger.finish({ id, attempt: 1, outcome: 'done' })))
    const claim = ledger.claim(await help.deliveryOf(waiting.id), 1)
    await delay(300)
    for (const { id } of jobs) assert.equal(await help.status(id), 'running')
    down = false
    assert.ok((await ends).every(Boolean))
    assert.equal((await claim).jobs[0]?.id, waiting.id)
    for (const { id } of jobs) {
      assert.deepEqual(await notes(id), [1])
      await help.assertSound(id)
    }
  })

  test('stores everything once when only answers are lost, and supersedes no attempt', async () => {
    const { ledger, db, superseded } = open()
    const [job] = await running(1)
    const waiting = buildJobSpec()
    await help.enqueue(waiting)
    const seen = new Set<string>()
    db.fault = (name) => {
      const first = !seen.has(name)
      seen.add(name)
      return first ? 'after' : null
    }
    for (const n of [1, 2, 3]) ledger.progress(createProgress(job!.id, n))
    await ledger.idle()
    assert.deepEqual(superseded, [])
    assert.deepEqual(await notes(job!.id), [1, 2, 3])
    // The statement succeeds but its answer is lost, so the job runs under this lease. A heartbeat then returns the job
    // to the queue (see the executor).
    const before = ledger.claims
    const claiming = ledger.claim(await help.deliveryOf(waiting.id), 1)
    assert.deepEqual([before, ledger.claims.isUnderWay], [{ answered: 0, isUnderWay: false }, true])
    assert.deepEqual(await claiming, { jobs: [], isDone: true })
    assert.equal(await help.status(waiting.id), 'running')
    await ledger.idle()
    assert.deepEqual(ledger.claims, { answered: 1, isUnderWay: false })
    await ledger.finish({ id: job!.id, attempt: 1, outcome: 'done', result: '1' })
    assert.equal(await help.status(job!.id), 'done')
    await help.assertSound(job!.id)
  })

  test('fails only the job whose result cannot be stored', async () => {
    const { ledger } = open()
    const jobs = await running(6)
    const poison = ['"a\\u0000b"', '{"\\u0000":1}', '"\\ud800"', 'no JSON']
    const results = ['1', ...poison, '2']
    const ended = await Promise.all(
      jobs.map(({ id, attempt }, i) => ledger.finish({ id, attempt, outcome: 'done', result: results[i]! })),
    )
    assert.deepEqual(
      ended,
      jobs.map(() => true),
    )
    const rows = await Promise.all(jobs.map(({ id }) => help.row(id)))
    assert.deepEqual(
      rows.map((row) => row.status),
      ['done', 'failed', 'failed', 'failed', 'failed', 'done'],
    )
    assert.deepEqual(
      [rows[1]!.error_code, rows[1]!.error_detail],
      ['internal', 'The job result could not be stored'],
    )
    for (const { id } of jobs) await help.assertSound(id)
  })

  test('drops only the progress that cannot be stored, and the job continues', async () => {
    const { ledger, superseded, named } = open()
    const [one, two] = await running(2)
    const bad: ProgressEntry = { ...createProgress(one!.id, 2), data: { label: '\u0000' } }
    for (const entry of [
      createProgress(one!.id, 1),
      bad,
      createProgress(one!.id, 3),
      createProgress(two!.id, 1),
    ])
      ledger.progress(entry)
    await ledger.idle()
    assert.deepEqual([await notes(one!.id), await notes(two!.id)], [[1, 3], [1]])
    assert.deepEqual(superseded, [])
    assert.ok(named('job_report').length >= 4)
    assert.equal(await ledger.finish({ ...one!, outcome: 'done' }), true)
    await help.assertSound(one!.id)
  })

  test('fails a job even if the detail of its failure cannot be stored', async () => {
    const { ledger } = open()
    const [job] = await running(1)
    assert.equal(
      await ledger.finish({ ...job!, outcome: 'failed', code: 'internal', detail: 'a\u0000b' }),
      true,
    )
    assert.equal(await help.status(job!.id), 'failed')
  })

  test('reports to a superseded attempt once per entry, and rejects its end', async () => {
    const { ledger, superseded, marked } = open()
    const [mine, kept] = await running(2)
    await help.finish({ ...mine!, outcome: 'interrupted' })
    await help.claim(mine!.id, await help.lease())
    ledger.progress(createProgress(mine!.id, 1))
    ledger.progress(createProgress(kept!.id, 1))
    await ledger.idle()
    assert.deepEqual(superseded, [`${mine!.id}/1`])
    assert.deepEqual(marked, [kept!.id])
    assert.equal(await ledger.finish({ id: mine!.id, attempt: 1, outcome: 'done' }), false)
    assert.equal(await help.status(mine!.id), 'running')
  })

  test('combines deliveries of one mailbox: the most slots, from the earliest job on', async () => {
    const { ledger } = open()
    const jobs = [1, 2, 3].map(() => buildJobSpec({ mailbox: 'shared' }))
    await help.enqueue(...jobs)
    const [first, second, third] = await Promise.all(jobs.map(({ id }) => help.deliveryOf(id)))
    const claims = await Promise.all([
      ledger.claim(third!, 1),
      ledger.claim(first!, 2),
      ledger.claim({ ...second!, mailbox: 'of nobody' }, 5),
    ])
    assert.deepEqual(
      claims.map((some) => some.jobs.map(({ id }) => id)),
      [[], [jobs[0]!.id, jobs[1]!.id], []],
    )
    assert.equal(await help.state(jobs[2]!.id), 'delivered')
  })

  test('handles scheduled messages of an actor in turn, whether their deliveries are claimed or returned together', async () => {
    const { ledger } = open()
    const jobs = Array.from({ length: 4 }, () => buildJobSpec({ actor: 'scheduled', delay_ms: 60_000 }))
    const [later, ...due] = jobs.map(({ id }) => id)
    await help.enqueue(...jobs)
    await base.query(`update job set run_at = now() where id = any($1)`, [due])
    await base.db.one(scheduleJobs(9))
    const deliveriesBefore = await Promise.all(due.map((id) => help.deliveryOf(id)))
    await base.query('delete from graphile_worker._private_jobs where payload ->> $1 = $2', [
      'mailbox',
      'scheduled',
    ])
    await Promise.all(deliveriesBefore.map((delivery) => ledger.redeliver(delivery)))
    for (const id of due) {
      const deliveries = (await help.deliveries()).filter(({ mailbox }) => mailbox === 'scheduled')
      const claimed = await Promise.all(deliveries.map((delivery) => ledger.claim(delivery, 1)))
      assert.deepEqual(
        claimed.flatMap(({ jobs }) => jobs).map((job) => job.id),
        [id],
      )
      await help.finish({ id, attempt: 1, outcome: 'done' })
    }
    assert.equal(await help.status(later!), 'scheduled')
  })

  test('delivers a returned delivery again', async () => {
    const { ledger } = open()
    const job = buildJobSpec()
    await help.enqueue(job)
    const delivery = await help.deliveryOf(job.id)
    await ledger.redeliver(delivery)
    const [first, again, ...more] = await help.deliveries(job.id)
    assert.deepEqual({ ...again, row: 0, run_at: 0 }, { ...first, row: 0, run_at: 0 })
    assert.deepEqual([again!.run_at > first!.run_at, more], [true, []])
  })

  test('keeps each delivery of a mailbox whose claim is not done, because each begins elsewhere', async () => {
    const { ledger } = open()
    const [early, late] = [buildJobSpec({ actor: null }), buildJobSpec({ actor: null })]
    await help.enqueue(early)
    await help.enqueue(late)
    const delivery = await help.deliveryOf(early.id)
    const { ordinal } = await help.row(late.id)
    const claimBoth = () =>
      Promise.all([
        ledger.claim(delivery, 1),
        ledger.claim({ ...delivery, first: Number(ordinal), id: late.id }, 5),
      ])
    await withClient(base.url, async (client) => {
      await client.query('begin')
      await client.query(`select from job where id = any($1) for update`, [[early.id, late.id]])
      assert.deepEqual(await claimBoth(), [
        { jobs: [], isDone: false },
        { jobs: [], isDone: false },
      ])
      await client.query('rollback')
    })
    const claims = await claimBoth()
    assert.equal(claims.flatMap(({ jobs }) => jobs)[0]!.id, early.id)
  })

  test('combines returned deliveries of one mailbox into one', async () => {
    const { ledger } = open()
    const doubled = Array.from({ length: 3 }, () => buildJobSpec({ actor: 'doubled' }))
    const other = buildJobSpec({ actor: 'other' })
    await help.enqueue(...doubled, other)
    const [third, first, second, last] = await Promise.all(
      [doubled[2]!, doubled[0]!, doubled[1]!, other].map(({ id }) => help.deliveryOf(id)),
    )
    const before = (await help.deliveries()).length
    await Promise.all(
      [last!, ...Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? third! : second!))].map(
        ledger.redeliver,
        ledger,
      ),
    )
    await Promise.all([third!, first!].map(ledger.redeliver, ledger))
    assert.deepEqual(
      (await help.deliveries()).slice(before).map(({ first }) => first),
      [second!.first, last!.first, first!.first],
    )
  })

  test('retries after deadlocks and shutdowns, but not after other errors', async () => {
    const { ledger, db, named } = open()
    const [job] = await running(1)
    db.error = () => fail('database.busy')
    let times = 3
    db.fault = (name) => (name === 'job_report' && times-- > 0 ? 'before' : null)
    const entry: FinishEntry = { ...job!, outcome: 'done' }
    assert.equal(await ledger.finish(entry), true)
    assert.equal(named('job_report').length, 4)
  })

  test('retries claims and ends that a server without memory rejected', async () => {
    const { ledger, db } = open()
    const [job] = await running(1)
    const waiting = buildJobSpec()
    await help.enqueue(waiting)
    db.error = () => mapDatabaseError(Object.assign(new Error('out of memory'), { code: '53200' })) as Error
    db.fault = (name) => (db.calls.filter((call) => call.name === name).length < 3 ? 'before' : null)
    const claiming = ledger.claim(await help.deliveryOf(waiting.id), 1)
    assert.equal(await ledger.finish({ ...job!, outcome: 'done', result: '1' }), true)
    assert.deepEqual([await help.status(job!.id), (await help.row(job!.id)).result], ['done', 1])
    assert.equal((await claiming).jobs[0]?.id, waiting.id)
  })

  test('stores entries that arrive during other statements', async () => {
    const { ledger } = open()
    const jobs = await running(5)
    for (let n = 1; n <= 50; n++) {
      for (const { id } of jobs) ledger.progress(createProgress(id, n))
      if (n % 7 === 0) await delay(1)
    }
    await ledger.idle()
    for (const { id } of jobs) assert.equal((await notes(id)).length, 50)
    const more = buildJobSpec()
    await help.enqueue(more)
    assert.equal((await ledger.claim(await help.deliveryOf(more.id), 1)).jobs[0]?.id, more.id)
    await ledger.idle()
  })
})
