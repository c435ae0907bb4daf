import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { createVisibilityTracker } from '../../sql/reads/visibility.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

const { url, query } = await createTestDatabase()
const LIMIT_MS = 30_000

/** Runs one probe, as the health check does. */
async function runProbe({ expression, onValue }: ReturnType<typeof createVisibilityTracker>): Promise<void> {
  const [row] = await query(`select ${expression} as probe`)
  onValue(row!.probe as string)
}

test('the horizon stays before an open transaction, even before it writes', async () => {
  const settled = createVisibilityTracker(LIMIT_MS, Date.now)
  const open = new pg.Client({ connectionString: url })
  await open.connect()
  after(() => open.end())
  await open.query('begin')
  const { rows } = await open.query('select extract(epoch from now()) * 1000 as ms')
  const begun = Number(rows[0].ms)
  await until('the transaction is some seconds old', () => Date.now() > begun + 2_500)
  await runProbe(settled)
  assert.ok(settled.visibilityHorizon() <= begun)
  assert.ok(settled.visibilityHorizon() > begun - LIMIT_MS, 'what is older is')
  await open.query('commit')
  await runProbe(settled)
  assert.ok(settled.visibilityHorizon() > begun)
})

test('the horizon ignores transactions that are open longer than a write may take, or that are invisible', async () => {
  const settled = createVisibilityTracker(LIMIT_MS, () => 100_000)
  for (const oldest of ['50000', '']) {
    settled.onValue(oldest)
    assert.equal(settled.visibilityHorizon(), 69_000)
  }
  settled.onValue('90000')
  assert.equal(settled.visibilityHorizon(), 89_000)
})

test('the horizon lags by a limit if the server does not track activities', async () => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  after(() => client.end())
  const settled = createVisibilityTracker(LIMIT_MS, () => 100_000)
  await client.query('set track_activities = off')
  const { rows } = await client.query(`select ${settled.expression} as probe`)
  settled.onValue(rows[0].probe)
  assert.equal(settled.visibilityHorizon(), 69_000)
})
