import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cancelJobs, closeBatch } from '../../sql/jobs/jobs.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields, withClient } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, url, query } = database
const ledger = createLedgerHelp(database)
const lease = await ledger.lease()

/** Adds a batch with its members; returns their ids. */
async function addBatch(members: number, fields: JobFields = {}) {
  const batch = buildJobSpec({ is_batch: true, payload: { is_open: true } })
  const jobs = Array.from({ length: members }, () => buildJobSpec({ batch_id: batch.id, ...fields }))
  await ledger.enqueue(batch, ...jobs)
  return { id: batch.id, members: jobs.map(({ id }) => id) }
}

const close = async (id: string) => (await db.any(closeBatch(id))).map((row) => row.id)

/** Runs a job to its end. */
async function run(id: string, outcome: 'done' | 'failed' = 'done') {
  const claimed = await ledger.claim(id, lease)
  assert.ok(claimed !== null, `${id} can be claimed`)
  return ledger.finish({ id, attempt: claimed.attempt, outcome })
}

const progress = async (id: string) => {
  const { label, progress_current, progress_total } = await ledger.row(id)
  return [label, progress_current, progress_total]
}

describe('a batch', () => {
  test('runs once it is closed and all members have ended, whatever their outcomes', async () => {
    const { id, members } = await addBatch(3)
    const [first, second, third] = members as [string, string, string]
    await run(first)
    assert.deepEqual(await progress(id), ['1 of 3 tasks have ended', 1, 3])
    assert.deepEqual(await close(id), [])
    await run(second, 'failed')
    assert.equal(await ledger.status(id), 'waiting')
    assert.deepEqual((await run(third)).sort(), [third, id].sort())
    assert.equal(await ledger.state(id), 'delivered')
    assert.deepEqual(await progress(id), ['3 of 3 tasks have ended', 3, 3])
    await run(id)
    await ledger.assertSound(id)
  })

  test('waits to be closed although all members have ended', async () => {
    const { id, members } = await addBatch(1)
    await run(members[0]!)
    assert.equal(await ledger.status(id), 'waiting')
    assert.deepEqual(await close(id), [id])
    assert.equal(await ledger.state(id), 'delivered')
    assert.deepEqual(await close(id), [], 'it closes once')
  })

  test('without members runs when it is closed', async () => {
    const { id } = await addBatch(0)
    assert.deepEqual(await close(id), [id])
    assert.equal(await ledger.state(id), 'delivered')
  })

  test('gets more members until it is closed', async () => {
    const { id, members } = await addBatch(1)
    const more = buildJobSpec({ batch_id: id })
    await ledger.enqueue(more)
    assert.deepEqual(await progress(id), ['0 of 2 tasks have ended', 0, 2])
    await close(id)
    await assert.rejects(ledger.enqueue(buildJobSpec({ batch_id: id })), { code: 'batch.closed' })
    await run(members[0]!)
    await run(more.id)
    assert.equal(await ledger.state(id), 'delivered')
    await ledger.claim(id, lease)
    await assert.rejects(ledger.enqueue(buildJobSpec({ batch_id: id })), { code: 'batch.closed' })
  })

  test('has a member that waits for another, and counts its cancellation', async () => {
    const { id, members } = await addBatch(1)
    await ledger.enqueue(buildJobSpec({ batch_id: id, after: members, after_outcome: 'done' }))
    await close(id)
    await run(members[0]!, 'failed')
    assert.deepEqual(await progress(id), ['2 of 2 tasks have ended', 2, 2])
    assert.equal(await ledger.state(id), 'delivered')
  })

  test('stores an event of its progress at most every 250 ms', async () => {
    const { id, members } = await addBatch(20)
    const startedAt = performance.now()
    for (const member of members) await run(member)
    const spent = performance.now() - startedAt
    const events = (await ledger.events(id)).filter(({ data }) => data.status === 'waiting')
    assert.ok(events.length >= 1 && events.length <= 1 + spent / 250, `${events.length} in ${spent} ms`)
    await ledger.assertSound(id)
  })

  test('ends cancelled after its running members, and at once without any', async () => {
    const { id, members } = await addBatch(3)
    const [running, queued, waiting] = members as [string, string, string]
    const claimed = await ledger.claim(running, lease)
    const changed = (await db.any(cancelJobs([id]))).map((row) => row.id)
    assert.ok([queued, waiting].every((member) => changed.includes(member)))
    assert.deepEqual(await Promise.all([id, ...members].map(ledger.status)), [
      'waiting',
      'running',
      'cancelled',
      'cancelled',
    ])
    assert.ok((await ledger.row(running)).cancel_requested_at !== null)
    await assert.rejects(ledger.enqueue(buildJobSpec({ batch_id: id })), { code: 'batch.closed' })
    assert.deepEqual(
      (await ledger.finish({ id: running, attempt: claimed!.attempt, outcome: 'cancelled' })).sort(),
      [running, id].sort(),
    )
    const row = await ledger.row(id)
    assert.deepEqual([row.status, row.error_code], ['cancelled', null])
    await ledger.assertSound(id)

    const empty = await addBatch(1)
    await db.any(cancelJobs([empty.id]))
    assert.deepEqual(await Promise.all([empty.id, ...empty.members].map(ledger.status)), [
      'cancelled',
      'cancelled',
    ])
  })

  test('cancels members that are being added meanwhile, or refuses them', async () => {
    const { id } = await addBatch(1)
    const late = buildJobSpec({ batch_id: id })
    await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select job_enqueue($1::jsonb)', [JSON.stringify([late])])
      const cancelled = db.any(cancelJobs([id]))
      await waitForLock(query)
      await client.query('commit')
      await cancelled
    })
    assert.deepEqual(await Promise.all([id, late.id].map(ledger.status)), ['cancelled', 'cancelled'])
  })

  test('has no job that depends on it, even through others', async () => {
    const { id, members } = await addBatch(1)
    const outside = buildJobSpec({ after: [id], after_outcome: 'any' })
    await ledger.enqueue(outside)
    const code = { code: 'batch.cycle' }
    const add = (after: readonly string[]) =>
      ledger.enqueue(buildJobSpec({ batch_id: id, after, after_outcome: 'done' }))
    await assert.rejects(add([id]), code)
    await assert.rejects(add([outside.id]), code)
    await add(members)
  })

  test('counts the end of a member once, whatever depends on that later', async () => {
    const { id, members } = await addBatch(2)
    await close(id)
    await run(members[0]!)
    await ledger.enqueue(buildJobSpec({ after: [members[0]!], after_outcome: 'done' }))
    assert.equal(await ledger.status(id), 'waiting')
    assert.deepEqual(await progress(id), ['1 of 2 tasks have ended', 1, 2])
  })

  test('releases what depends on it', async () => {
    const { id, members } = await addBatch(1)
    await close(id)
    const next = buildJobSpec({ after: [id], after_outcome: 'done' })
    await ledger.enqueue(next)
    await run(members[0]!)
    assert.equal(await ledger.status(next.id), 'waiting')
    await run(id)
    assert.equal(await ledger.state(next.id), 'delivered')
  })
})

describe('a running job that adds members to itself', () => {
  test('waits for them with the outcome `wait`, which counts no try', async () => {
    const job = await ledger.running({}, lease)
    const [first, second] = [buildJobSpec({ batch_id: job.id }), buildJobSpec({ batch_id: job.id })]
    await ledger.enqueue(first, second)
    await run(first.id)
    await ledger.finish({ ...job, outcome: 'wait' })
    const row = await ledger.row(job.id)
    assert.deepEqual([row.status, row.tries, row.lease_id], ['waiting', 0, null])
    assert.deepEqual(await progress(job.id), ['1 of 2 tasks have ended', 1, 2])
    await run(second.id)
    assert.equal(await ledger.state(job.id), 'delivered')
    await run(job.id)
    await ledger.assertSound(job.id)
  })

  test('runs again if they have ended before its attempt', async () => {
    const job = await ledger.running({}, lease)
    const member = buildJobSpec({ batch_id: job.id })
    await ledger.enqueue(member)
    await run(member.id)
    await ledger.finish({ ...job, outcome: 'wait' })
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('is cancelled with them while its attempt runs', async () => {
    const job = await ledger.running({}, lease)
    const member = buildJobSpec({ batch_id: job.id })
    await ledger.enqueue(member)
    const held = await ledger.claim(member.id, lease)
    await db.any(cancelJobs([job.id]))
    await ledger.finish({ ...job, outcome: 'cancelled' })
    assert.equal(await ledger.status(job.id), 'waiting')
    await ledger.finish({ id: member.id, attempt: held!.attempt, outcome: 'cancelled' })
    assert.deepEqual(await Promise.all([job.id, member.id].map(ledger.status)), ['cancelled', 'cancelled'])
    await ledger.assertSound(job.id)
  })

  test('gets no member after it was cancelled', async () => {
    const job = await ledger.running({}, lease)
    await db.any(cancelJobs([job.id]))
    await assert.rejects(ledger.enqueue(buildJobSpec({ batch_id: job.id })), { code: 'batch.closed' })
  })
})
