import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)
const lease = await ledger.lease()

const HOURLY = { starts: 2, seconds: 7200, burst: 1 }

/** Adds jobs to a mailbox with a rate. */
async function addRated(mailbox: string, jobs: number, fields: JobFields = {}) {
  const specs = Array.from({ length: jobs }, () =>
    buildJobSpec({ mailbox, mailbox_limit: 1000, rate: HOURLY, ...fields }),
  )
  await ledger.enqueue(...specs)
  return specs.map(({ id }) => id)
}

/** Claims with the first delivery of a mailbox. */
async function claimFrom(mailbox: string, freeSlots = 100) {
  const [delivery] = (await ledger.deliveries()).filter((one) => one.mailbox === mailbox)
  assert.ok(delivery !== undefined, `${mailbox} has a delivery`)
  await query('delete from graphile_worker._private_jobs where id = $1', [delivery.row])
  const { claims, again, wait_ms } = await db.one(claimJobs(lease, [{ delivery, freeSlots }]))
  return { ids: parseClaims({ claims }).map(({ id }) => id), again, wait_ms }
}

/** Lets time pass for a rate. */
const advance = async (mailbox: string, seconds: number) => {
  await query('update start_rate set next_at = next_at - make_interval(secs => $2) where name = $1', [
    mailbox,
    seconds,
  ])
  await query(
    `update job set run_at = run_at - make_interval(secs => $2) where mailbox = $1 and status = 'scheduled'`,
    [mailbox, seconds],
  )
  await ledger.makeDue()
}

describe('a mailbox with a rate', () => {
  test('starts one job, and makes the next one due an interval later', async () => {
    const [first, second, third] = await addRated('even', 3)
    const claim = await claimFrom('even')
    assert.deepEqual([claim.ids, claim.again], [[first], []])
    assert.ok(Math.abs(claim.wait_ms! - 3_600_000) < 60_000, `${claim.wait_ms}`)
    assert.deepEqual(await Promise.all([second!, third!].map(ledger.status)), ['scheduled', 'available'])
    assert.deepEqual(
      (await ledger.deliveries()).filter(({ mailbox }) => mailbox === 'even'),
      [],
      'no delivery before that',
    )
    await advance('even', 3600)
    assert.deepEqual((await claimFrom('even')).ids, [second])
    await advance('even', 3600)
    assert.deepEqual((await claimFrom('even')).ids, [third])
  })

  test('starts a burst together, then one job per interval', async () => {
    const ids = await addRated('burst', 5, { rate: { ...HOURLY, burst: 2 } })
    assert.deepEqual((await claimFrom('burst')).ids, ids.slice(0, 2))
    await advance('burst', 3600)
    assert.deepEqual((await claimFrom('burst')).ids, ids.slice(2, 3))
    await advance('burst', 100_000)
    assert.deepEqual((await claimFrom('burst')).ids, ids.slice(3), 'no more than a burst is saved')
  })

  test('takes no start for slots without a job', async () => {
    const [only] = await addRated('one', 1, { rate: { ...HOURLY, burst: 2 } })
    assert.deepEqual((await claimFrom('one')).ids, [only])
    const [next] = await addRated('one', 1, { rate: { ...HOURLY, burst: 2 } })
    assert.deepEqual((await claimFrom('one')).ids, [next])
  })

  test('holds back a job that is added while no start is allowed', async () => {
    await addRated('later', 1)
    await claimFrom('later')
    const [held] = await addRated('later', 1)
    const claim = await claimFrom('later')
    assert.deepEqual([claim.ids, claim.again], [[], []])
    assert.equal(await ledger.status(held!), 'scheduled')
    await advance('later', 3600)
    assert.deepEqual((await claimFrom('later')).ids, [held])
  })

  test('also respects its limit, and continues when a job ends', async () => {
    const ids = await addRated('both', 3, {
      mailbox_limit: 1,
      rate: { starts: 1000, seconds: 1, burst: 1000 },
    })
    assert.deepEqual((await claimFrom('both')).ids, ids.slice(0, 1))
    await ledger.finish({ id: ids[0]!, attempt: 1, outcome: 'done' })
    assert.deepEqual((await claimFrom('both')).ids, ids.slice(1, 2))
  })

  test('follows the latest request', async () => {
    const ids = await addRated('changed', 3)
    await claimFrom('changed')
    await addRated('changed', 0)
    ids.push(...(await addRated('changed', 1, { rate: { starts: 1000, seconds: 1, burst: 1000 } })))
    await advance('changed', 3600)
    assert.deepEqual((await claimFrom('changed')).ids, ids.slice(1))
  })

  test('counts the start of a retry', async () => {
    const [first, second] = await addRated('retried', 2)
    await claimFrom('retried')
    await ledger.finish({ id: first!, attempt: 1, outcome: 'release' })
    assert.deepEqual((await claimFrom('retried')).ids, [])
    await advance('retried', 3600)
    assert.deepEqual((await claimFrom('retried')).ids, [first])
    await advance('retried', 3600)
    assert.deepEqual((await claimFrom('retried')).ids, [second])
  })
})

describe('jobs of one mailbox with different limits', () => {
  test('start while fewer jobs run than their own limit', async () => {
    const add = async (mailbox_limit: number) => {
      const job = buildJobSpec({ mailbox: 'mixed', mailbox_limit })
      await ledger.enqueue(job)
      return job.id
    }
    const wide = [await add(3), await add(3)]
    const narrow = await add(1)
    assert.deepEqual((await claimFrom('mixed')).ids, wide)
    await ledger.finish({ id: wide[0]!, attempt: 1, outcome: 'done' })
    assert.deepEqual(
      (await ledger.deliveries()).filter(({ mailbox }) => mailbox === 'mixed'),
      [],
    )
    await ledger.finish({ id: wide[1]!, attempt: 1, outcome: 'done' })
    assert.deepEqual((await claimFrom('mixed')).ids, [narrow])
  })
})
