import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { z } from 'zod'
import { createDatabase, noRows, type Queries, sql } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { newAddress, sharedDatabase } from './shared-database.ts'

const { url, db, query } = await sharedDatabase()
await query('create table pair (id integer primary key, n integer not null)')
await query('insert into pair values (1, 0), (2, 0)')

const incrementPair = (id: number) => sql.type(noRows)`update pair set n = n + 1 where id = ${id}`

test('retries a transaction after a deadlock, so that both commit', async () => {
  let runs = 0
  const both = new Promise<void>((resolve) => {
    let waiting = 0
    arrive = () => ++waiting === 2 && resolve()
  })
  const addInOrder = (first: number, second: number): Promise<void> =>
    db.transaction(async (tx) => {
      runs++
      await tx.run(incrementPair(first))
      arrive()
      await both
      await tx.run(incrementPair(second))
    })
  await Promise.all([addInOrder(1, 2), addInOrder(2, 1)])
  // The retried transaction may lock its row again before the waiting one wakes up, so more than three runs are
  // possible.
  assert.ok(runs >= 3, String(runs))
  assert.deepEqual(await query('select n from pair order by id'), [{ n: 2 }, { n: 2 }])
})
let arrive = (): unknown => null

test('a constraint violation inside a transaction throws its own failure', async () => {
  const insert = sql.type(noRows)`insert into account (email, password_hash) values (${newAddress()}, 'x')`
  await db.run(insert)
  await assert.rejects(
    db.transaction((tx) => tx.run(insert)),
    (error) => error instanceof Failure && error.code === 'account.email_taken',
  )
})

test("rejects a row that does not match its query's schema", async () => {
  await assert.rejects(db.one(sql.type(z.object({ n: z.string() }))`select 1 as n`))
  await assert.rejects(db.one(sql.type(noRows)`select 1 where false`))
  assert.equal(await db.maybeOne(sql.type(noRows)`select 1 where false`), null)
})

test('rolls back when the work throws', async () => {
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.run(incrementPair(1))
      throw new Error('no')
    }),
    /no/,
  )
  assert.deepEqual(await query('select n from pair where id = 1'), [{ n: 2 }])
})

test('runs a follow-up once after a commit, and never after a rollback', async () => {
  const seen: string[] = []
  await db.transaction(async (tx) => {
    tx.afterCommit(() => seen.push('after'))
    await tx.run(sql.type(noRows)`select 1`)
    seen.push('inside')
  })
  const failing = db.transaction(async (tx) => {
    tx.afterCommit(() => seen.push('never'))
    throw new Error('no')
  })
  await assert.rejects(failing, /no/)
  assert.deepEqual(seen, ['inside', 'after'])
})

test('keeps the connection after a rejection, and replaces a lost one', async () => {
  const one = createDatabase({ url, applicationName: 'one', size: 1, validateRows: true })
  after(() => one.close())
  const pid = async (tx: Queries): Promise<number> =>
    (await tx.one(sql.type(z.object({ pid: z.number() }))`select pg_backend_pid() as pid`)).pid
  const first = await one.transaction(pid)
  const twice = sql.type(noRows)`insert into pair values (1, 0)`
  const insert = sql.type(noRows)`insert into account (email, password_hash) values (${newAddress()}, 'x')`
  await one.run(insert)
  const refusals = [(tx: Queries) => tx.run(insert), () => Promise.reject(fail('document.missing'))]
  for (const refusal of refusals) {
    await assert.rejects(one.transaction(refusal), Failure)
    assert.equal(await one.transaction(pid), first)
  }
  await assert.rejects(
    one.transaction((tx) => tx.run(twice)),
    { constraint: 'pair_pkey' },
  )
  const second = await one.transaction(pid)
  const kill = sql.type(noRows)`select pg_terminate_backend(pg_backend_pid())`
  await assert.rejects(one.transaction((tx) => tx.run(kill)))
  assert.notEqual(await one.transaction(pid), second)
})
