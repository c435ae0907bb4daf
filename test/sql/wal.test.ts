import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { z } from 'zod'
import { createDatabase, noRows, sql } from '../../sql/db.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { formatPosition, parsePosition, watchWal } from '../../sql/reads/wal.ts'
import { createTestDatabase } from '../database.ts'
import { startPooler } from '../standins/pooler.ts'
import { until } from '../until.ts'

/** Readers know the end of the WAL, and when they read it. */

const { url, query } = await createTestDatabase()
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
// Minimum size of a commit record in bytes.
const COMMIT_BYTES = 34
const insertRow = () => sql.type(noRows)`insert into written values (${++n})`
const readFlushed = async () =>
  parsePosition(String((await query('select pg_current_wal_flush_lsn() as at'))[0]!.at))!

test('parses and formats positions like PostgreSQL, and rejects anything else', () => {
  for (const text of ['0/0', '0/16B3748', 'A1/FFFFFFFF']) {
    assert.equal(formatPosition(parsePosition(text)!), text)
  }
  assert.equal(parsePosition('1/0'), 2 ** 32)
  assert.equal(parsePosition('a/b'), parsePosition('A/B'))
  for (const text of ['', '/', '1', '1/', '1/2/3', '-1/0', '123456789/0', '0/G', ' 0/1', '0/1\n', 'Infinity'])
    assert.equal(parsePosition(text), null, text)
})

for (const [through, more] of [
  ['a server', { url }],
  ['a pooler', { url: pooler.url, pooled: true }],
] as const) {
  const positions: number[] = []
  const onCommit = (position: string) => void positions.push(parsePosition(position)!)
  const db = createDatabase({ ...more, applicationName: 'wal', size: 2, validateRows: true, onCommit })
  after(() => db.close())

  test(`a commit returns a position after it: through ${through}`, async () => {
    const before = await db.transaction(async (tx) => {
      await tx.run(insertRow())
      return (await tx.one(sql.type(At)`select pg_current_wal_insert_lsn()::text as at`)).at
    })
    assert.equal(positions.length, 1)
    assert.ok(positions[0]! >= parsePosition(before)! + COMMIT_BYTES)
    const { at } = await db.one(
      sql.type(At)`insert into written values (${++n}) returning pg_current_wal_insert_lsn()::text as at`,
    )
    assert.equal(positions.length, 2)
    assert.ok(positions[1]! >= parsePosition(at)! + COMMIT_BYTES)
    assert.equal(await db.run(insertRow()), 1)
    assert.equal(positions.length, 3)
  })

  test(`failures stay the same with positions, and connections stay usable: through ${through}`, async () => {
    const again = sql.type(noRows)`insert into written values (${n})`
    const isKnown = (error: unknown) => (error as { constraint?: string }).constraint === 'written_pkey'
    const count = positions.length
    for (let round = 0; round < 3; round++) {
      await assert.rejects(db.run(again), (error: Error) => isKnown(error) || isKnown(error.cause))
      await assert.rejects(db.transaction((tx) => tx.run(again)))
      await assert.rejects(
        db.transaction(() => Promise.reject(new Error('no'))),
        /no/,
      )
    }
    assert.equal(positions.length, count)
    const many = await Promise.all(Array.from({ length: 50 }, () => db.run(insertRow())))
    assert.deepEqual(many, Array(50).fill(1))
    assert.equal(positions.length, count + 50)
  })
}

test('the result of a covering read lies before the end of the WAL', async () => {
  await query('insert into written values (2000)')
  const min = await readFlushed()
  const covering = wal.trackReads(reader)
  assert.equal(
    await covering.text({ name: 'count', text: `select 'x' from written where n = 2000` }, []),
    'x',
  )
  assert.ok(wal.end >= min)
})

test('the floor is the position of that time ago, and moves', async () => {
  await until('a first sample exists', () => wal.getLagFloor() !== null)
  const first = wal.getLagFloor()!
  assert.match(wal.lineage, /^\d+\/1$/)
  await query('insert into written select generate_series(10000, 20000)')
  const grown = await readFlushed()
  assert.ok(wal.getLagFloor()! < grown)
  await until('the sample is older than the lag', () => wal.getLagFloor()! >= grown)
  assert.ok(wal.getLagFloor()! > first)
  assert.equal(wal.countBytesAhead(Number.MAX_SAFE_INTEGER), 0)
  assert.ok(wal.countBytesAhead(0)! >= grown)
})
