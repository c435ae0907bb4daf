import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { Failure } from '../../sql/errors.ts'
import type { ReadStatement } from '../../sql/reads/reader.ts'
import { CONNECTION_COUNT, createSlowReads, type SlowReads } from '../../sql/reads/slow-reads.ts'
import { startPooler } from '../standins/pooler.ts'
import { until } from '../until.ts'
import { sharedDatabase } from './shared-database.ts'

/** Each kind of slow read has its time limit, and callers take turns. */

const { url, query } = await sharedDatabase()
const pooler = await startPooler({ url, size: CONNECTION_COUNT })
const openedReads: SlowReads[] = []
after(async () => {
  await Promise.all(openedReads.map((reads) => reads.close()))
  await pooler.stop()
})

const LIMITS = { list: 300, search: 20_000, statistics: 40_000 }
const [ONE, OTHER] = [1, 2]

function openReads(applicationName: string, more: { url?: string; pooled?: boolean } = {}): SlowReads {
  const reads = createSlowReads({ url, applicationName, limits: LIMITS, ...more })
  openedReads.push(reads)
  return reads
}

const sleep: ReadStatement<[text: string, seconds: number]> = {
  name: 'sleep',
  text: 'select $1::text from pg_sleep($2::float8)',
}
const lockedEcho: ReadStatement<[text: string]> = {
  name: 'locked',
  text: 'select $1::text from pg_advisory_xact_lock_shared(1)',
}
const isFailure = (code: string) => (error: unknown) => error instanceof Failure && error.code === code
const countRunning = async (name: string): Promise<number> =>
  (
    await query(
      `select from pg_stat_activity where application_name = $1 and state = 'active' and query like '%pg_sleep%'`,
      [name],
    )
  ).length

for (const [through, more] of [
  ['a server', {}],
  ['a pooler', { url: pooler.url, pooled: true }],
] as const)
  test(`each kind has its limit, after which the connection is still usable: through ${through}`, async () => {
    const reads = openReads(`slow-limits ${through}`, more)
    await assert.rejects(reads.readsFor(ONE, 'list').text(sleep, ['x', 30]), isFailure('database.too_slow'))
    assert.equal(await reads.readsFor(ONE, 'search').text(sleep, ['x', 0.5]), 'x')
    assert.deepEqual(await reads.readsFor(ONE, 'statistics').texts(sleep, ['y', 0]), ['y'])
  })

test('one caller runs a limited number of reads, and does not delay another caller', async () => {
  const reads = openReads('slow-turns')
  const flood = Array.from({ length: 3 * CONNECTION_COUNT }, (_, n) =>
    reads.readsFor(ONE, 'search').text(sleep, [`${n}`, 10]),
  )
  const ended = Promise.allSettled(flood)
  await until(
    'the maximum number of reads runs',
    async () => (await countRunning('slow-turns')) === CONNECTION_COUNT,
  )
  assert.equal(await reads.readsFor(OTHER, 'search').text(sleep, ['other', 0]), 'other')
  assert.equal(await countRunning('slow-turns'), CONNECTION_COUNT)
  // Cancels the remaining reads.
  const stop = setInterval(
    () =>
      void query(
        `select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'slow-turns' and state = 'active'`,
      ).catch(() => {}),
    20,
  )
  await ended
  clearInterval(stop)
})

test('a read that gets no connection within its limit fails as busy', async () => {
  const reads = openReads('slow-busy')
  const holder = await connect({ url, applicationName: 'holder' })
  after(() => holder.end())
  await holder.query('select pg_advisory_lock(1)')
  const held = Array.from({ length: CONNECTION_COUNT }, () =>
    reads.readsFor(ONE, 'search').text(lockedEcho, ['x']),
  )
  const late = reads.readsFor(ONE, 'list').text(sleep, ['x', 0])
  await assert.rejects(late, isFailure('database.busy'))
  await holder.query('select pg_advisory_unlock(1)')
  assert.deepEqual(await Promise.all(held), Array(CONNECTION_COUNT).fill('x'))
})
