import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cancelJobs, enqueueJobs } from '../../sql/jobs/jobs.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)

describe('job_enqueue', () => {
  test('adds a waiting job with one delivery', async () => {
    const job = buildJobSpec({ payload: { a: 1 }, request_id: 'r1', name: 'test.other', queue: 'else' })
    assert.deepEqual(await ledger.enqueue(job), [{ spec_ordinal: 1, job_id: job.id, joined: false }])
    const row = await ledger.row(job.id)
    assert.deepEqual(
      { status: row.status, attempt: row.attempt, tries: row.tries, seq: row.seq },
      { status: 'available', attempt: 0, tries: 0, seq: 0 },
    )
    const [delivery, ...more] = await ledger.deliveries(job.id)
    assert.deepEqual(more, [])
    assert.deepEqual(
      [delivery!.task, delivery!.mailbox, delivery!.limit, delivery!.first],
      ['test.other', job.mailbox, null, Number(row.ordinal)],
    )
    const [stored] = await query('select payload, queue, request_id from job where id = $1', [job.id])
    assert.deepEqual(stored, { payload: { a: 1 }, queue: 'else', request_id: 'r1' })
  })

  test('adds a delivery for an idle actor, but not behind a waiting message', async () => {
    const [first, second, third] = [
      buildJobSpec({ actor: 'a1' }),
      buildJobSpec({ actor: 'a1' }),
      buildJobSpec({ actor: 'a1' }),
    ]
    await ledger.enqueue(first)
    await ledger.enqueue(second)
    const { id } = first
    await ledger.claim(id, await ledger.lease())
    await ledger.enqueue(third)
    assert.deepEqual(
      [await ledger.status(id), await ledger.status(second.id), await ledger.status(third.id)],
      ['running', 'available', 'available'],
    )
    assert.deepEqual(
      (await ledger.deliveries(id, second.id, third.id)).map((d) => d.id),
      [id],
    )
  })

  test('joins the live job of a busy actor, and adds nothing', async () => {
    const [first, second, third] = [1, 2, 3].map(() => buildJobSpec({ actor: 'a2', when_busy: 'join' }))
    const before = await ledger.enqueue(first!)
    assert.deepEqual(before, [{ spec_ordinal: 1, job_id: first!.id, joined: false }])
    assert.deepEqual(await ledger.enqueue(second!), [{ spec_ordinal: 1, job_id: first!.id, joined: true }])
    await ledger.claim(first!.id, await ledger.lease())
    assert.deepEqual(await ledger.enqueue(third!), [{ spec_ordinal: 1, job_id: first!.id, joined: true }])
    assert.deepEqual(await query(`select count(*)::int as n from job where mailbox = 'a2'`), [{ n: 1 }])
    assert.deepEqual(await ledger.deliveries(second!.id, third!.id), [])
  })

  test('joins the first waiting job, but not a running one', async () => {
    const running = await ledger.running({ actor: 'a6' })
    const [first, second] = [1, 2].map(() => buildJobSpec({ actor: 'a6', when_busy: 'join_waiting' }))
    assert.deepEqual(await ledger.enqueue(first!), [{ spec_ordinal: 1, job_id: first!.id, joined: false }])
    assert.deepEqual(await ledger.enqueue(second!), [{ spec_ordinal: 1, job_id: first!.id, joined: true }])
    await ledger.finish({ ...running, outcome: 'done' })
    await ledger.claim(first!.id, await ledger.lease())
    const third = buildJobSpec({ actor: 'a6', when_busy: 'join_waiting' })
    assert.deepEqual(await ledger.enqueue(third), [{ spec_ordinal: 1, job_id: third.id, joined: false }])
  })

  test("starts a new job if the actor's last one has ended", async () => {
    const first = await ledger.running({ actor: 'a3' })
    await ledger.finish({ ...first, outcome: 'done' })
    const next = buildJobSpec({ actor: 'a3', when_busy: 'join' })
    assert.deepEqual(await ledger.enqueue(next), [{ spec_ordinal: 1, job_id: next.id, joined: false }])
    assert.equal((await ledger.deliveries(next.id)).length, 1)
  })

  test('joins the first live or waiting job whose spec matches, or else waits', async () => {
    const job = (force: boolean, joins: object = force ? { force } : {}) =>
      buildJobSpec({ actor: 'a5', when_busy: 'join', payload: { force, other: 1 }, joins })
    const enqueueJoining = async (one: ReturnType<typeof job>) => (await ledger.enqueue(one))[0]!.job_id
    const first = await ledger.running(job(false))
    assert.equal(await enqueueJoining(job(false)), first.id)
    const forced = job(true)
    assert.equal(await enqueueJoining(forced), forced.id, 'it does not become one that skips')
    assert.deepEqual(await ledger.deliveries(forced.id), [])
    assert.equal(await enqueueJoining(job(true)), forced.id)
    assert.equal(await enqueueJoining(job(false)), first.id)
    await db.any(cancelJobs([first.id]))
    assert.equal(await enqueueJoining(job(false)), forced.id, 'the one that runs is about to end')
    await ledger.finish({ ...first, outcome: 'cancelled' })
    assert.equal((await ledger.deliveries(forced.id)).length, 1)
    for (const force of [true, false]) assert.equal(await enqueueJoining(job(force)), forced.id)
    assert.deepEqual(await query(`select count(*)::int as n from job where mailbox = 'a5'`), [{ n: 2 }])
  })

  test('does not join a job that is being cancelled, but waits behind it', async () => {
    const first = await ledger.running({ actor: 'a4', when_busy: 'join' })
    await db.any(cancelJobs([first.id]))
    const next = buildJobSpec({ actor: 'a4', when_busy: 'join' })
    assert.deepEqual(await ledger.enqueue(next), [{ spec_ordinal: 1, job_id: next.id, joined: false }])
    assert.deepEqual(await ledger.deliveries(next.id), [])
    await ledger.finish({ ...first, outcome: 'cancelled' })
    assert.equal((await ledger.deliveries(next.id)).length, 1)
  })

  test('answers many specs in order, with one delivery for each mailbox', async () => {
    const specs = [
      buildJobSpec({ actor: 'b1' }),
      buildJobSpec(),
      buildJobSpec({ actor: 'b2' }),
      buildJobSpec({ actor: 'b1' }),
      buildJobSpec({ actor: 'b1', when_busy: 'join' }),
      buildJobSpec(),
      buildJobSpec({ actor: 'b2', when_busy: 'join' }),
    ]
    const answers = await ledger.enqueue(...specs)
    const id = (i: number): string => specs[i]!.id
    assert.deepEqual(answers, [
      { spec_ordinal: 1, job_id: id(0), joined: false },
      { spec_ordinal: 2, job_id: id(1), joined: false },
      { spec_ordinal: 3, job_id: id(2), joined: false },
      { spec_ordinal: 4, job_id: id(3), joined: false },
      { spec_ordinal: 5, job_id: id(0), joined: true },
      { spec_ordinal: 6, job_id: id(5), joined: false },
      { spec_ordinal: 7, job_id: id(2), joined: true },
    ])
    assert.equal(await ledger.status(id(3)), 'available')
    const sent = (await ledger.deliveries(...specs.map((s) => s.id))).map((d) => d.id)
    assert.deepEqual([...sent].sort(), [id(0), id(1), id(2), id(5)].sort())
    const ordinals = await query(
      'select id from job where id = any($1) and mailbox_limit is not null order by ordinal',
      [specs.map((s) => s.id)],
    )
    assert.deepEqual(
      ordinals.map((r) => r.id),
      [id(0), id(2), id(3)],
    )
  })

  test('adds one delivery for the available jobs of a mailbox, from the first on', async () => {
    const added = (fields: Parameters<typeof buildJobSpec>[0]) =>
      buildJobSpec({ mailbox: 'test/one', ...fields })
    const now = Array.from({ length: 25 }, () => added({}))
    const later = Array.from({ length: 3 }, () => added({ delay_ms: 60_000 }))
    const other = Array.from({ length: 2 }, () => added({ mailbox: 'test/two' }))
    await ledger.enqueue(...later, ...now, ...other)
    const all = [...now, ...later, ...other].map(({ id }) => id)
    assert.deepEqual(
      (await ledger.deliveries(...all)).map(({ id }) => id),
      [now[0]!.id, other[0]!.id],
    )
  })

  test('adds no delivery behind an available job, but behind a scheduled or running one', async () => {
    const add = async (mailbox: string, fields: Parameters<typeof buildJobSpec>[0] = {}) => {
      const job = buildJobSpec({ mailbox, ...fields })
      await ledger.enqueue(job)
      return job.id
    }
    const countOf = async (id: string) => (await ledger.deliveries(id)).length
    await add('behind/1')
    assert.equal(await countOf(await add('behind/1')), 0)
    assert.equal(await countOf(await add('behind/1', { delay_ms: 60_000 })), 0, 'it is not due')
    await add('behind/2', { delay_ms: 60_000 })
    assert.equal(await countOf(await add('behind/2')), 1)
    await ledger.claim(await add('behind/3'), await ledger.lease())
    assert.equal(await countOf(await add('behind/3')), 1)
  })

  test('accepts an empty list, and specs without deliveries', async () => {
    assert.deepEqual(await ledger.enqueue(), [])
    await ledger.enqueue(buildJobSpec({ actor: 'c1' }))
    const [waiting] = [buildJobSpec({ actor: 'c1' })]
    assert.equal((await ledger.enqueue(waiting)).length, 1)
    assert.deepEqual(await ledger.deliveries(waiting.id), [])
  })

  test('schedules a job without a delivery', async () => {
    const jobs = [buildJobSpec({ delay_ms: 3_600_000 }), buildJobSpec({ delay_ms: 3_600_000, actor: 'd1' })]
    await ledger.enqueue(...jobs)
    for (const { id } of jobs) {
      const [row] = await query(
        `select status, run_at - created_at = interval '1 hour' as exactly from job where id = $1`,
        [id],
      )
      assert.deepEqual(row, { status: 'scheduled', exactly: true }, 'by the clock of the database')
      assert.deepEqual(await ledger.deliveries(id), [])
    }
  })

  test('adds neither job nor delivery in a transaction that is rolled back', async () => {
    const job = buildJobSpec({ actor: 'e1' })
    const thrown = new Error('the business row is refused')
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.any(enqueueJobs([job], 0))
        throw thrown
      }),
      thrown,
    )
    assert.deepEqual(await query('select id from job where id = $1', [job.id]), [])
    assert.deepEqual(await ledger.deliveries(job.id), [])
  })

  test('adds one delivery for fifty concurrent messages to one actor', async () => {
    const specs = Array.from({ length: 50 }, () => buildJobSpec({ actor: 'f1' }))
    await Promise.all(specs.map((job) => ledger.enqueue(job)))
    assert.equal((await ledger.deliveries(...specs.map((s) => s.id))).length, 1)
  })

  test('adds one job for fifty concurrent joins of one actor', async () => {
    const specs = Array.from({ length: 50 }, () => buildJobSpec({ actor: 'f2', when_busy: 'join' }))
    const answers = await Promise.all(specs.map((job) => ledger.enqueue(job)))
    assert.equal(new Set(answers.map(([answer]) => answer!.job_id)).size, 1)
    assert.equal(answers.filter(([answer]) => !answer!.joined).length, 1)
  })

  test('does not deadlock when calls name the same actors in different orders', async () => {
    const actors = ['g1', 'g2', 'g3', 'g4']
    const calls = Array.from({ length: 40 }, (_, i) =>
      actors.map((_, k) => buildJobSpec({ actor: actors[(i + (i % 2 ? k : -k) + 8) % 4]! })),
    )
    await Promise.all(calls.map((specs) => ledger.enqueue(...specs)))
    const counts = await query(
      `select mailbox, count(*)::int as n from job where mailbox = any($1) group by 1`,
      [actors],
    )
    assert.deepEqual(
      counts.map((c) => c.n),
      [40, 40, 40, 40],
    )
  })
})
