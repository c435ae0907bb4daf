import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { JOB_EVENTS_CHANNEL, listen } from '../../sql/connections/notify.ts'
import { type FinishEntry, serializeEntries } from '../../sql/jobs/jobs.ts'
import { storeReport } from '../../sql/jobs/reports.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { createLedgerHelp } from './ledger-help.ts'

/** Reports of workers, which store progress and ends, and can notify subscribers. */

const database = await createTestDatabase()
const { db, url, query } = database
const ledger = createLedgerHelp(database)
const lines: string[] = []
const listener = await listen({
  url,
  applicationName: 'report-test',
  channels: { [JOB_EVENTS_CHANNEL]: (payload) => void lines.push(...payload.split('\n')) },
  onReconnect: () => {},
  onError: () => {},
})
after(() => listener.close())
beforeEach(() => void lines.splice(0))

const createNotes = (id: string, ...numbers: number[]) =>
  numbers.map((n) => ({ id, attempt: 1, n, kind: 'note', data: { n } }))
const createEnds = (...ids: string[]) =>
  serializeEntries(ids.map((id): FinishEntry => ({ id, attempt: 1, outcome: 'done', result: '"r"' })))
/** Returns the id, number and kind of each received event. */
const listEvents = () => lines.map((line) => line.split('\t').slice(0, 3))

/** Drops what was announced before. Notifications arrive in the order of their commits. */
async function dropLines(): Promise<void> {
  await query(`select pg_notify($1, 'until here')`, [JOB_EVENTS_CHANNEL])
  await until('earlier notifications have arrived', () => lines.includes('until here'))
  lines.splice(0)
}

test('a report stores progress and the end that follows it, and announces all its events', async () => {
  const [{ id }, other] = [await ledger.running(), await ledger.running()]
  await dropLines()
  const ends = createEnds(id, other.id)
  const stored = await db.one(storeReport({ progress: createNotes(id, 1, 2), ends }, true))
  assert.deepEqual(
    { ...stored, ended: stored.ended.toSorted() },
    { progressed: [id], afters: [1], ended: [id, other.id].toSorted() },
  )
  await until('all is announced', () => lines.length === 4)
  assert.deepEqual(listEvents(), [
    [id, '2', 'note'],
    [id, '3', 'note'],
    [id, '4', 'status'],
    [other.id, '2', 'status'],
  ])
  assert.deepEqual([await ledger.status(id), await ledger.status(other.id)], ['done', 'done'])
})

test('a report that does not notify can share a transaction, and announces nothing', async () => {
  const { id } = await ledger.running()
  await dropLines()
  await db.transaction(async (tx) => {
    await tx.one(storeReport({ progress: createNotes(id, 1), ends: createEnds(id) }, false))
    assert.equal(await ledger.status(id), 'running', 'before the commit')
  })
  assert.equal(await ledger.status(id), 'done')
  await query(`select pg_notify($1, 'last')`, [JOB_EVENTS_CHANNEL])
  await until('the next notification arrives', () => lines.length > 0)
  assert.deepEqual(lines, ['last'])
})

test('a report that notifies is refused in a transaction', async () => {
  const { id } = await ledger.running()
  await assert.rejects(
    db.transaction((tx) => tx.one(storeReport({ progress: createNotes(id, 1), ends: '[]' }, true))),
    { code: '2D000' },
  )
  assert.deepEqual(await ledger.events(id).then((events) => events.filter(({ kind }) => kind === 'note')), [])
})

test('a repeated report announces only the last event of its jobs', async () => {
  const { id } = await ledger.running()
  await db.one(storeReport({ progress: createNotes(id, 1, 2), ends: '[]' }, false))
  await dropLines()
  const { progressed, afters } = await db.one(
    storeReport({ progress: createNotes(id, 1, 2), ends: '[]' }, true),
  )
  assert.deepEqual({ progressed, afters }, { progressed: [id], afters: [null] })
  await until('it is announced', () => lines.length > 0)
  assert.deepEqual(listEvents(), [[id, '3', 'note']])
})
