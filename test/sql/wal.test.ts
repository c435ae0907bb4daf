import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { z } from 'zod'
import { createDatabase, noRows, sql } from '../../sql/db.ts'
import { createReader } from '../../sql/reader.ts'
import { formatPosition, parsePosition, watchWal } from '../../sql/wal.ts'
import { testDatabase } from '../database.ts'
import { startPooler } from '../standins/pooler.ts'
import { until } from '../until.ts'

/** Where the WAL ends, and who has learned it when. */

const { url, query } = await testDatabase()
const pooler = await startPooler({ url, size: 2 })
const reader = createReader({ url, applicationName: 'wal' })
const LAG_MS = 1_500
const wal = watchWal(reader, LAG_MS)
after(async () => {
  wal.close()
  await reader.close()
  await pooler.stop()
})
await query('create table written (n int primary key)')
let n = 0
const At = z.object({ at: z.string() })
// The least that a commit record takes.
const COMMIT_BYTES = 34
const insert = () => sql.type(noRows)`insert into written values (${++n})`
const flushed = async () =>
  parsePosition(String((await query('select pg_current_wal_flush_lsn() as at'))[0]!.at))!

test('a position is read and written as PostgreSQL does, and anything else is none', () => {
  for (const text of ['0/0', '0/16B3748', 'A1/FFFFFFFF']) {
    assert.equal(formatPosition(parsePosition(text)!), text)
  }
  assert.equal(parsePosition('1/0'), 2 ** 32)
  assert.equal(parsePosition('a/b'), parsePosition('A/B'))
  assert.equal(formatPosition(Number.POSITIVE_INFINITY), 'FFFFFFFF/FFFFFFFF')
  for (const text of ['', '/', '1', '1/', '1/2/3', '-1/0', '123456789/0', '0/G', ' 0/1', '0/1\n', 'Infinity'])
    assert.equal(parsePosition(text), null, text)
})

for (const [through, more] of [
  ['a server', { url }],
  ['a pooler', { url: pooler.url, pooled: true }],
] as const)
  test(`a committed transaction comes with a position beyond it, others with none: through ${through}`, async () => {
    const positions: string[] = []
    const onCommit = (position: string) => void positions.push(position)
    const db = createDatabase({ ...more, applicationName: 'wal', size: 2, validateRows: true, onCommit })
    after(() => db.close())
    const before = await db.transaction(async (tx) => {
      await tx.run(insert())
      return (await tx.one(sql.type(At)`select pg_current_wal_insert_lsn()::text as at`)).at
    })
    assert.equal(positions.length, 1)
    assert.ok(parsePosition(positions[0]!)! >= parsePosition(before)! + COMMIT_BYTES)
    await db.run(insert())
    await assert.rejects(
      db.transaction(() => Promise.reject(new Error('no'))),
      /no/,
    )
    await assert.rejects(db.transaction((tx) => tx.run(sql.type(noRows)`insert into written values (${n})`)))
    assert.equal(positions.length, 1)
    assert.equal(await db.transaction((tx) => tx.run(insert())), 1)
    assert.ok(parsePosition(positions[1]!)! > parsePosition(positions[0]!)!)
  })

test('who asks gets the present end, with one statement for all who ask at once', async () => {
  await query('insert into written values (1000)')
  const least = await flushed()
  const asked = [wal.ask(), wal.ask()]
  assert.equal(asked[0], asked[1])
  const [position] = await Promise.all(asked)
  assert.ok(position! >= least)
  assert.equal(wal.end, position)
})

test('what a covering read has returned is before the end', async () => {
  await query('insert into written values (2000)')
  const least = await flushed()
  const covering = wal.covering(reader)
  assert.equal(
    await covering.text({ name: 'count', text: `select 'x' from written where n = 2000` }, []),
    'x',
  )
  assert.ok(wal.end >= least)
})

test('the floor is where the WAL was that long ago, and moves', async () => {
  await until('a sample', () => wal.floor() !== null)
  const first = wal.floor()!
  assert.match(wal.lineage, /^\d+\/1$/)
  await query('insert into written select generate_series(10000, 20000)')
  const grown = await flushed()
  assert.ok(wal.floor()! < grown)
  await until('it is older', () => wal.floor()! >= grown)
  assert.ok(wal.floor()! > first)
  assert.equal(wal.ahead(Number.MAX_SAFE_INTEGER), 0)
  assert.ok(wal.ahead(0)! >= grown)
})
