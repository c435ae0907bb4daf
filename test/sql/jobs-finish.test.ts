import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  ALONE_FROM_DEATHS,
  cancelJobs,
  type FinishEntry,
  MAX_CRASHES,
  SUSPECT_FROM_DEATHS,
} from '../../sql/jobs/jobs.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { buildJobSpec, createLedgerHelp, withClient } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, url, query } = database
const ledger = createLedgerHelp(database)
const lease = await ledger.lease()

/** Adds a running job of an actor, and a message that waits behind it. */
async function addBusyActor(actor: string) {
  const first = await ledger.running({ actor }, lease)
  const next = buildJobSpec({ actor })
  await ledger.enqueue(next)
  return { first, next }
}

describe('job_finish', () => {
  test('done: stores result and times, adds one terminal event, releases the lease', async () => {
    const job = await ledger.running({}, lease)
    await ledger.progress(job.id, job.attempt, { n: 1, data: { label: 'almost', current: 9, total: 10 } })
    assert.deepEqual(await ledger.finish({ ...job, outcome: 'done', result: { pages: [1, null] } }), [job.id])
    const row = await ledger.row(job.id)
    assert.deepEqual(
      [row.status, row.result, row.error_code, row.lease_id],
      ['done', { pages: [1, null] }, null, null],
    )
    assert.ok(row.finished_at !== null)
    assert.deepEqual((await ledger.events(job.id)).at(-1), {
      seq: 3,
      kind: 'status',
      data: { status: 'done', label: 'almost', current: 9, total: 10 },
    })
    await ledger.assertSound(job.id)
  })

  test('done without a result is done', async () => {
    const job = await ledger.running({}, lease)
    await ledger.finish({ ...job, outcome: 'done', result: null })
    assert.deepEqual([await ledger.status(job.id), (await ledger.row(job.id)).result], ['done', null])
  })

  test('failed: stores code and detail, but no result', async () => {
    const job = await ledger.running({}, lease)
    await ledger.finish({ ...job, outcome: 'failed', code: 'document.missing', detail: 'Gone', result: 1 })
    const row = await ledger.row(job.id)
    assert.deepEqual(
      [row.status, row.error_code, row.error_detail, row.result],
      ['failed', 'document.missing', 'Gone', null],
    )
    await ledger.assertSound(job.id)
  })

  test('cancelled: ends the job', async () => {
    const job = await ledger.running({}, lease)
    await ledger.finish({ ...job, outcome: 'cancelled' })
    assert.equal(await ledger.status(job.id), 'cancelled')
    await ledger.assertSound(job.id)
  })

  test('retry: is scheduled for the end of the delay, and counts the try', async () => {
    const job = await ledger.running({}, lease)
    const before = Date.now()
    await ledger.finish({ ...job, outcome: 'retry', delay_ms: 60_000 })
    const row = await ledger.row(job.id)
    assert.deepEqual([row.status, row.tries, row.lease_id, row.finished_at], ['scheduled', 1, null, null])
    const wait = row.run_at.getTime() - before
    assert.ok(wait > 55_000 && wait < 120_000, `waits ${wait} ms`)
    assert.equal((await ledger.deliveries(job.id)).length, 1, 'it gets no delivery before it is due')
    assert.equal((await ledger.events(job.id)).at(-1)!.data.status, 'queued')
    assert.equal(await ledger.claim(job.id, lease), null, 'it is not due')
    await ledger.makeDue(job.id)
    assert.equal((await ledger.deliveries(job.id)).length, 2)
    assert.deepEqual((await ledger.claim(job.id, lease))?.tries, 2)
    await ledger.assertSound(job.id)
  })

  test('release: runs again immediately, and does not count the try', async () => {
    const job = await ledger.running({}, lease)
    await ledger.finish({ ...job, outcome: 'release' })
    const row = await ledger.row(job.id)
    assert.deepEqual([row.status, row.tries, row.interruptions], ['available', 0, 0])
    assert.equal((await ledger.deliveries(job.id)).length, 2)
    assert.ok(row.run_at.getTime() <= Date.now() + 1000)
    assert.deepEqual((await ledger.claim(job.id, lease))?.tries, 1)
  })

  test('interrupted: runs again without counting the try, is a suspect after two, and is never given up', async () => {
    const job = await ledger.running({ max_tries: 1 }, lease)
    for (let attempt = 1; attempt <= 8; attempt++) {
      await ledger.finish({ id: job.id, attempt, outcome: 'interrupted' })
      const row = await ledger.row(job.id)
      assert.deepEqual(
        [row.status, row.interruptions, row.tries],
        ['available', Math.min(attempt, SUSPECT_FROM_DEATHS), 0],
      )
      const claimed = await ledger.claim(job.id, lease)
      assert.equal(claimed!.interruptions, row.interruptions)
    }
    await ledger.assertSound(job.id)
  })

  test(`crashed: runs again until it has crashed ${MAX_CRASHES} times in isolation`, async () => {
    const job = await ledger.running({ max_tries: 1 }, lease)
    const why = { code: 'job.crashed', detail: 'It died' }
    let attempt = 1
    for (; attempt <= SUSPECT_FROM_DEATHS; attempt++) {
      await ledger.finish({ id: job.id, attempt, outcome: 'interrupted' })
      await ledger.claim(job.id, lease)
    }
    for (let crashes = 1; crashes < MAX_CRASHES; crashes++, attempt++) {
      const interruptions = ALONE_FROM_DEATHS + crashes
      await ledger.finish({ id: job.id, attempt, outcome: 'crashed', interruptions, ...why })
      const row = await ledger.row(job.id)
      assert.deepEqual(
        [row.status, row.interruptions, row.tries, row.error_code],
        ['available', interruptions, 0, null],
      )
      await ledger.claim(job.id, lease)
    }
    // The death of a worker does not count as a failure of the job.
    await ledger.finish({ id: job.id, attempt: attempt++, outcome: 'interrupted' })
    assert.equal((await ledger.row(job.id)).interruptions, ALONE_FROM_DEATHS + MAX_CRASHES - 1)
    await ledger.claim(job.id, lease)
    await ledger.finish({ id: job.id, attempt, outcome: 'crashed', ...why })
    const row = await ledger.row(job.id)
    assert.deepEqual([row.status, row.error_code, row.error_detail], ['failed', why.code, why.detail])
    await ledger.assertSound(job.id)
  })

  test('sends only the next message of the mailbox, however the job ends', async () => {
    for (const outcome of ['done', 'failed', 'cancelled'] as const) {
      const { first, next } = await addBusyActor(`mailbox-${outcome}`)
      const third = buildJobSpec({ actor: `mailbox-${outcome}` })
      await ledger.enqueue(third)
      await ledger.finish({ ...first, outcome, code: 'internal', detail: '' })
      assert.deepEqual(
        (await ledger.deliveries(next.id, third.id)).map((d) => d.id),
        [next.id],
      )
    }
  })

  test('keeps the actor busy between tries', async () => {
    for (const outcome of ['retry', 'release', 'interrupted', 'crashed'] as const) {
      const { first, next } = await addBusyActor(`busy-${outcome}`)
      await ledger.finish({ ...first, outcome, delay_ms: outcome === 'retry' ? 60_000 : 0 })
      assert.deepEqual(
        [await ledger.state(first.id), await ledger.state(next.id)],
        [outcome === 'retry' ? 'scheduled' : 'delivered', 'available'],
      )
      assert.deepEqual(await ledger.deliveries(next.id), [])
    }
  })

  test('stores an end once', async () => {
    const job = await ledger.running({}, lease)
    assert.deepEqual(await ledger.finish({ ...job, outcome: 'done', result: 1 }), [job.id])
    for (const outcome of [
      'done',
      'failed',
      'cancelled',
      'retry',
      'release',
      'interrupted',
      'crashed',
    ] as const) {
      assert.deepEqual(await ledger.finish({ ...job, outcome, code: 'internal' }), [])
    }
    assert.deepEqual((await ledger.row(job.id)).result, 1)
    assert.equal((await ledger.deliveries(job.id)).length, 1)
    await ledger.assertSound(job.id)
  })

  test('stores one of many concurrent ends', async () => {
    const job = await ledger.running({ actor: 'race' }, lease)
    const outcomes = ['done', 'failed', 'cancelled', 'retry', 'release', 'interrupted', 'crashed'] as const
    const ended = await Promise.all(
      outcomes.map((outcome) => ledger.finish({ ...job, outcome, code: 'internal' })),
    )
    assert.equal(ended.flat().length, 1)
    await ledger.assertSound(job.id)
  })

  test('ignores a wrong attempt', async () => {
    const job = await ledger.running({}, lease)
    for (const attempt of [0, 2])
      assert.deepEqual(await ledger.finish({ id: job.id, attempt, outcome: 'done' }), [])
    assert.equal(await ledger.status(job.id), 'running')
  })

  test('cancels a job that would run again after a cancel request, and continues its mailbox', async () => {
    for (const outcome of ['retry', 'release', 'interrupted', 'crashed'] as const) {
      const { first, next } = await addBusyActor(`cancel-${outcome}`)
      await db.any(cancelJobs([first.id]))
      await ledger.finish({ ...first, outcome, delay_ms: 60_000 })
      assert.deepEqual(
        [await ledger.state(first.id), await ledger.state(next.id)],
        ['cancelled', 'delivered'],
      )
      await ledger.assertSound(first.id)
    }
  })

  test('keeps the outcome of a job that ended by itself after a cancel request', async () => {
    for (const outcome of ['done', 'failed'] as const) {
      const job = await ledger.running({}, lease)
      await db.any(cancelJobs([job.id]))
      await ledger.finish({ ...job, outcome, code: 'internal' })
      assert.equal(await ledger.status(job.id), outcome)
      await ledger.assertSound(job.id)
    }
  })

  for (const actor of [null, 'late-cancel']) {
    test(`obeys a cancel request that commits while a retry waits for its row (${actor ?? 'no actor'})`, async () => {
      const job = await ledger.running({ actor }, lease)
      const finishing = await withClient(url, async (client) => {
        await client.query('begin')
        await client.query('select job_cancel(array[$1::uuid])', [job.id])
        const finishing = ledger.finish({ ...job, outcome: 'retry', delay_ms: 60_000 })
        await waitForLock(query)
        await client.query('commit')
        return { ended: finishing }
      })
      assert.deepEqual(await finishing.ended, [job.id])
      assert.equal(await ledger.status(job.id), 'cancelled')
      await ledger.assertSound(job.id)
    })
  }

  test('sends a message that commits while its actor becomes idle', async () => {
    const job = await ledger.running({ actor: 'late-message' }, lease)
    const late = buildJobSpec({ actor: 'late-message' })
    const finishing = await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select job_enqueue($1)', [JSON.stringify([late])])
      const finishing = ledger.finish({ ...job, outcome: 'done' })
      await waitForLock(query)
      await client.query('commit')
      return { ended: finishing }
    })
    assert.deepEqual(await finishing.ended, [job.id])
    assert.equal(await ledger.state(late.id), 'delivered')
    assert.equal((await ledger.deliveries(late.id)).length, 1)
  })

  test('ends many jobs in one call, and continues every idle actor', async () => {
    const busy = await Promise.all(Array.from({ length: 12 }, (_, i) => addBusyActor(`many-${i}`)))
    const outcomes = ['done', 'retry', 'failed', 'release', 'cancelled', 'interrupted'] as const
    const entries: FinishEntry[] = busy.map(({ first }, i) => ({
      ...first,
      outcome: outcomes[i % 6]!,
      code: 'internal',
    }))
    const foreign = { id: buildJobSpec().id, attempt: 1, outcome: 'done' as const }
    assert.deepEqual(
      (await ledger.finish(foreign, ...entries)).sort(),
      busy.map(({ first }) => first.id).sort(),
    )
    const again = ['retry', 'release', 'interrupted']
    for (const [i, { first, next }] of busy.entries()) {
      const outcome = outcomes[i % 6]!
      assert.equal(await ledger.state(first.id), again.includes(outcome) ? 'delivered' : outcome)
      assert.equal(await ledger.state(next.id), again.includes(outcome) ? 'available' : 'delivered')
      await ledger.assertSound(first.id)
    }
  })

  test('does not deadlock when calls name the same actors in different orders', async () => {
    const jobs = await Promise.all(Array.from({ length: 40 }, (_, i) => addBusyActor(`cross-${i}`)))
    const halves = [jobs, [...jobs].reverse()].map((some) =>
      some.map(({ first }) => ({ ...first, outcome: 'done' as const })),
    )
    const ended = await Promise.all(halves.map((entries) => ledger.finish(...entries)))
    assert.equal(ended.flat().length, 40)
    const left = await query(
      `select status, count(*)::int as n from job where mailbox like 'cross-%' group by 1 order by 1`,
    )
    assert.deepEqual(left, [
      { status: 'available', n: 40 },
      { status: 'done', n: 40 },
    ])
    const next = await ledger.deliveries(...jobs.map(({ next }) => next.id))
    assert.equal(next.length, 40)
  })
})
