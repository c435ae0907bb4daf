import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cancelJob, enqueueJobs } from '../../sql/jobs.ts'
import { testDatabase } from '../database.ts'
import { ledgerOf, spec } from './ledger-help.ts'

const base = await testDatabase()
const { db, query } = base
const ledger = ledgerOf(base)

describe('job_enqueue', () => {
  test('a job without an actor is sent, with one delivery', async () => {
    const job = spec({ payload: { a: 1 }, request_id: 'r1', name: 'test.other', queue: 'else' })
    assert.deepEqual(await ledger.enqueue(job), [{ spec_ordinal: 1, job_id: job.id, joined: false }])
    const row = await ledger.row(job.id)
    assert.deepEqual(
      { status: row.status, delivery: row.delivery, attempt: row.attempt, tries: row.tries, seq: row.seq },
      { status: 'sent', delivery: 1, attempt: 0, tries: 0, seq: 0 },
    )
    const [delivery, ...more] = await ledger.deliveries(job.id)
    assert.deepEqual(more, [])
    assert.deepEqual([delivery!.delivery, delivery!.task], [1, 'test.other'])
    const [stored] = await query('select payload, queue, request_id from job where id = $1', [job.id])
    assert.deepEqual(stored, { payload: { a: 1 }, queue: 'else', request_id: 'r1' })
  })

  test('an idle actor is sent its message, a busy one keeps it waiting without a delivery', async () => {
    const [first, second, third] = [spec({ actor: 'a1' }), spec({ actor: 'a1' }), spec({ actor: 'a1' })]
    await ledger.enqueue(first)
    await ledger.enqueue(second)
    const { id } = first
    await ledger.claim(id, await ledger.lease())
    await ledger.enqueue(third)
    assert.deepEqual(
      [await ledger.status(id), await ledger.status(second.id), await ledger.status(third.id)],
      ['running', 'queued', 'queued'],
    )
    assert.deepEqual(
      (await ledger.deliveries(id, second.id, third.id)).map((d) => d.id),
      [id],
    )
    assert.equal((await ledger.row(second.id)).delivery, 0)
  })

  test('joining: the busy actor answers with its live job, and nothing is added', async () => {
    const [first, second, third] = [1, 2, 3].map(() => spec({ actor: 'a2', when_busy: 'join' }))
    const before = await ledger.enqueue(first!)
    assert.deepEqual(before, [{ spec_ordinal: 1, job_id: first!.id, joined: false }])
    assert.deepEqual(await ledger.enqueue(second!), [{ spec_ordinal: 1, job_id: first!.id, joined: true }])
    await ledger.claim(first!.id, await ledger.lease())
    assert.deepEqual(await ledger.enqueue(third!), [{ spec_ordinal: 1, job_id: first!.id, joined: true }])
    assert.deepEqual(await query(`select count(*)::int as n from job where actor = 'a2'`), [{ n: 1 }])
    assert.deepEqual(await ledger.deliveries(second!.id, third!.id), [])
  })

  test('joining an actor whose job has ended starts a new one', async () => {
    const first = await ledger.running({ actor: 'a3' })
    await ledger.finish({ ...first, outcome: 'done' })
    const next = spec({ actor: 'a3', when_busy: 'join' })
    assert.deepEqual(await ledger.enqueue(next), [{ spec_ordinal: 1, job_id: next.id, joined: false }])
    assert.equal(await ledger.status(next.id), 'sent')
  })

  test('a spec that says what it joins becomes the first job that holds it, live or waiting, and else waits', async () => {
    const job = (force: boolean, joins: object = force ? { force } : {}) =>
      spec({ actor: 'a5', when_busy: 'join', payload: { force, other: 1 }, joins })
    const joinedBy = async (one: ReturnType<typeof job>) => (await ledger.enqueue(one))[0]!.job_id
    const first = await ledger.running(job(false))
    assert.equal(await joinedBy(job(false)), first.id)
    const forced = job(true)
    assert.equal(await joinedBy(forced), forced.id, 'it does not become one that skips')
    assert.equal(await ledger.status(forced.id), 'queued')
    assert.equal(await joinedBy(job(true)), forced.id)
    assert.equal(await joinedBy(job(false)), first.id)
    await db.one(cancelJob(first.id))
    assert.equal(await joinedBy(job(false)), forced.id, 'the one that runs is about to end')
    await ledger.finish({ ...first, outcome: 'cancelled' })
    assert.equal(await ledger.status(forced.id), 'sent')
    for (const force of [true, false]) assert.equal(await joinedBy(job(force)), forced.id)
    assert.deepEqual(await query(`select count(*)::int as n from job where actor = 'a5'`), [{ n: 2 }])
  })

  test('a job that is being cancelled is not joined: the message waits behind it', async () => {
    const first = await ledger.running({ actor: 'a4', when_busy: 'join' })
    await db.one(cancelJob(first.id))
    const next = spec({ actor: 'a4', when_busy: 'join' })
    assert.deepEqual(await ledger.enqueue(next), [{ spec_ordinal: 1, job_id: next.id, joined: false }])
    assert.equal(await ledger.status(next.id), 'queued')
    await ledger.finish({ ...first, outcome: 'cancelled' })
    assert.equal(await ledger.status(next.id), 'sent')
    assert.equal((await ledger.deliveries(next.id)).length, 1)
  })

  test('many specs in one call: answers in order, one live job per actor, a delivery per sent job', async () => {
    const specs = [
      spec({ actor: 'b1' }),
      spec(),
      spec({ actor: 'b2' }),
      spec({ actor: 'b1' }),
      spec({ actor: 'b1', when_busy: 'join' }),
      spec(),
      spec({ actor: 'b2', when_busy: 'join' }),
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
    assert.equal(await ledger.status(id(3)), 'queued')
    const sent = (await ledger.deliveries(...specs.map((s) => s.id))).map((d) => d.id)
    assert.deepEqual([...sent].sort(), [id(0), id(1), id(2), id(5)].sort())
    const ordinals = await query(
      'select id from job where id = any($1) and actor is not null order by ordinal',
      [specs.map((s) => s.id)],
    )
    assert.deepEqual(
      ordinals.map((r) => r.id),
      [id(0), id(2), id(3)],
    )
  })

  test('jobs without actors are delivered in the order given', async () => {
    const specs = Array.from({ length: 300 }, () => spec({ name: 'test.order' }))
    await ledger.enqueue(...specs)
    assert.deepEqual(
      (await ledger.deliveries()).filter((d) => d.task === 'test.order').map((d) => d.id),
      specs.map((s) => s.id),
    )
  })

  test('short jobs without actors share deliveries of so many, of one task and time each', async () => {
    const together = (fields: Parameters<typeof spec>[0]) =>
      spec({ name: 'test.together', together: 10, ...fields })
    const plain = Array.from({ length: 25 }, () => together({}))
    const later = Array.from({ length: 3 }, () => together({ delay_ms: 60_000 }))
    const other = Array.from({ length: 2 }, () => together({ name: 'test.elsewhere' }))
    const actors = [together({ actor: 't1' }), together({ actor: 't2' })]
    await ledger.enqueue(...plain, ...later, ...other, ...actors)
    const rowsOf = async (some: readonly { id: string }[]) => {
      const found = await ledger.deliveries(...some.map((job) => job.id))
      assert.deepEqual(
        found.map((d) => [d.id, d.delivery]),
        some.map((job) => [job.id, 1]),
        'each once, in order',
      )
      return [...new Set(found.map((d) => d.row))].map((row) => found.filter((d) => d.row === row).length)
    }
    assert.deepEqual(await rowsOf(plain), [10, 10, 5])
    assert.deepEqual([await rowsOf(later), await rowsOf(other), await rowsOf(actors)], [[3], [2], [1, 1]])
  })

  test('what is sent again, or sent from a mailbox, has a delivery of its own', async () => {
    const jobs = Array.from({ length: 3 }, () => spec({ together: 10 }))
    await ledger.enqueue(...jobs)
    const lease = await ledger.lease()
    for (const { id } of jobs) await ledger.claim(id, lease)
    await ledger.finish(...jobs.map(({ id }) => ({ id, attempt: 1, outcome: 'release' as const })))
    const again = (await ledger.deliveries(...jobs.map(({ id }) => id))).filter((d) => d.delivery === 2)
    assert.equal(new Set(again.map((d) => d.row)).size, 3)
  })

  test('no specs, or none to send, is no error', async () => {
    assert.deepEqual(await ledger.enqueue(), [])
    await ledger.enqueue(spec({ actor: 'c1' }))
    const [waiting] = [spec({ actor: 'c1' })]
    assert.equal((await ledger.enqueue(waiting)).length, 1)
    assert.equal(await ledger.status(waiting.id), 'queued')
  })

  test('a later start is kept by job and delivery', async () => {
    const jobs = [spec({ delay_ms: 3_600_000 }), spec({ delay_ms: 3_600_000, actor: 'd1' })]
    await ledger.enqueue(...jobs)
    for (const { id } of jobs) {
      const { run_at } = await ledger.row(id)
      const [row] = await query(
        `select run_at - created_at = interval '1 hour' as exactly from job where id = $1`,
        [id],
      )
      assert.equal(row!.exactly, true, 'by the clock of the database')
      assert.deepEqual(
        (await ledger.deliveries(id)).map((d) => d.run_at),
        [run_at],
      )
    }
  })

  test('a rolled back transaction leaves neither job nor delivery', async () => {
    const job = spec({ actor: 'e1' })
    const thrown = new Error('the business row is refused')
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.any(enqueueJobs([job]))
        throw thrown
      }),
      thrown,
    )
    assert.deepEqual(await query('select id from job where id = $1', [job.id]), [])
    assert.deepEqual(await ledger.deliveries(job.id), [])
  })

  test('fifty enqueues for one actor at once: one is sent, all others wait', async () => {
    const specs = Array.from({ length: 50 }, () => spec({ actor: 'f1' }))
    await Promise.all(specs.map((job) => ledger.enqueue(job)))
    const counts = await query(
      `select status, count(*)::int as n from job where actor = 'f1' group by 1 order by 1`,
    )
    assert.deepEqual(counts, [
      { status: 'queued', n: 49 },
      { status: 'sent', n: 1 },
    ])
    assert.equal((await ledger.deliveries(...specs.map((s) => s.id))).length, 1)
  })

  test('fifty joins for one actor at once become one job', async () => {
    const specs = Array.from({ length: 50 }, () => spec({ actor: 'f2', when_busy: 'join' }))
    const answers = await Promise.all(specs.map((job) => ledger.enqueue(job)))
    assert.equal(new Set(answers.map(([answer]) => answer!.job_id)).size, 1)
    assert.equal(answers.filter(([answer]) => !answer!.joined).length, 1)
  })

  test('calls that name the same actors in other orders do not wait for each other for ever', async () => {
    const actors = ['g1', 'g2', 'g3', 'g4']
    const calls = Array.from({ length: 40 }, (_, i) =>
      actors.map((_, k) => spec({ actor: actors[(i + (i % 2 ? k : -k) + 8) % 4]! })),
    )
    await Promise.all(calls.map((specs) => ledger.enqueue(...specs)))
    const counts = await query(`select actor, count(*)::int as n from job where actor = any($1) group by 1`, [
      actors,
    ])
    assert.deepEqual(
      counts.map((c) => c.n),
      [40, 40, 40, 40],
    )
  })
})
