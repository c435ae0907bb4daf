import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { ConnectionError } from 'slonik'
import { z } from 'zod'
import { createDatabase, type Database, noRows, sql } from '../../sql/db.ts'
import { mapDatabaseError } from '../../sql/error-mapping.ts'
import { Failure } from '../../sql/errors.ts'
import { createTestDatabase } from '../database.ts'
import { countRounds } from '../runs.ts'
import { stopSharedServices } from '../services.ts'
import { until } from '../until.ts'
import { startProxy } from './proxy.ts'

await stopSharedServices()
const { url, query } = await createTestDatabase()
await query('create table mark (id integer generated always as identity, what text not null)')

const openDatabases: Database[] = []
after(() => Promise.all(openDatabases.map((db) => db.close())))

function openDatabase(
  applicationName: string,
  options: { at?: string; size?: number; validateRows?: boolean } = {},
): Database {
  const db = createDatabase({
    url: options.at ?? url,
    applicationName,
    size: options.size ?? 4,
    validateRows: options.validateRows ?? false,
  })
  openDatabases.push(db)
  return db
}

const selectOne = sql.type(z.object({ n: z.number() }))`select 1 as n`
const insertMark = (what: string) => sql.type(noRows)`insert into mark (what) values (${what})`
const countMarks = async (what: string): Promise<number> =>
  (await query('select id from mark where what = $1', [what])).length
const findBackends = (name: string) =>
  query('select 1 from pg_stat_activity where application_name = $1', [name])
const terminateBackends = (name: string) =>
  query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [name])
// Waits until the caller's own query runs. A new pool first queries types. If that query is cut off, the call fails
// with another error.
const waitUntilAsleep = (name: string) =>
  until('the query is sleeping', async () => {
    const text = `select from pg_stat_activity where application_name = $1 and state = 'active' and query like '%pg_sleep(30)%'`
    return (await query(text, [name])).length > 0
  })
const isFailure = (code: string) => (error: unknown) => error instanceof Failure && error.code === code
const isDatabaseDown = isFailure('database.down')

describe('a database pool', () => {
  test('connects at its first query, with its application name', async () => {
    const db = openDatabase('pool-lazy')
    assert.deepEqual(await findBackends('pool-lazy'), [])
    assert.deepEqual(await db.one(selectOne), { n: 1 })
    assert.equal((await findBackends('pool-lazy')).length, 1)
    assert.deepEqual(db.usage(), { active: 0, idle: 1, waiting: 0 })
  })

  test('opens no more connections than its size, and queues other callers', async () => {
    const db = openDatabase('pool-size', { size: 3 })
    const sleep = sql.type(noRows)`select pg_sleep(0.2)`
    const all = Promise.all(Array.from({ length: 7 }, () => db.any(sleep)))
    await until('all connections are in use', () => db.usage().active === 3)
    assert.ok(db.usage().waiting > 0)
    await all
    assert.equal((await findBackends('pool-size')).length, 3)
  })

  test('returns rows unchanged without validation, with numbers and times as JSON has them', async () => {
    const db = openDatabase('pool-types')
    const wrong = sql.type(z.object({ n: z.string() }))`select 1 as n`
    assert.deepEqual(await db.one(wrong), { n: 1 })
    const types = sql.type(
      noRows,
    )`select 9007199254740991::bigint as big, 1.5::numeric as num, 'x'::text as text, true as flag,
      '2026-01-02'::date as day, null::int as nothing, '{"a": [1]}'::jsonb as json, array['a']::text[] as list`
    assert.deepEqual(await db.one(types), {
      big: 9007199254740991,
      num: 1.5,
      text: 'x',
      flag: true,
      day: '2026-01-02',
      nothing: null,
      json: { a: [1] },
      list: ['a'],
    })
    await assert.rejects(openDatabase('pool-strict', { validateRows: true }).one(wrong), /validation|schema/i)
  })

  test('reports an outage when no server listens, and recovers later', async () => {
    const proxy = await startProxy(url)
    after(() => proxy.close())
    const db = openDatabase('pool-absent', { at: proxy.url })
    await proxy.refuse()
    for (let i = 0; i < 3; i++) await assert.rejects(db.one(selectOne), isDatabaseDown)
    await assert.rejects(
      db.transaction((tx) => tx.one(selectOne)),
      isDatabaseDown,
    )
    await proxy.accept()
    assert.deepEqual(await db.one(selectOne), { n: 1 })
  })

  test('recovers when the server goes away and comes back', async () => {
    const proxy = await startProxy(url)
    after(() => proxy.close())
    const db = openDatabase('pool-restart', { at: proxy.url })
    await Promise.all([1, 2, 3, 4].map(() => db.one(selectOne)))
    await proxy.refuse()
    for (let i = 0; i < 6; i++) await assert.rejects(db.one(selectOne), isDatabaseDown)
    await proxy.accept()
    await until('the server answers again', () => db.one(selectOne).catch(() => null))
    assert.deepEqual(
      await Promise.all([1, 2, 3, 4].map(() => db.one(selectOne))),
      [1, 2, 3, 4].map(() => ({ n: 1 })),
    )
  })

  test('reports an outage when the database ends an idle transaction, as in a frozen process', async () => {
    const db = openDatabase('pool-idle')
    const cut = db.transaction(async (tx) => {
      await tx.any(sql.type(noRows)`select set_config('idle_in_transaction_session_timeout', '20', true)`)
      await until(
        'the database has ended the transaction',
        async () => (await findBackends('pool-idle')).length === 0,
      )
      return tx.one(selectOne)
    })
    await assert.rejects(cut, isDatabaseDown)
    assert.deepEqual(await db.one(selectOne), { n: 1 })
  })

  test('reports an outage when a query is cut off, and discards idle connections that were cut', async () => {
    const db = openDatabase('pool-cut')
    const cut = assert.rejects(db.any(sql.type(noRows)`select pg_sleep(30)`), isDatabaseDown)
    await waitUntilAsleep('pool-cut')
    await terminateBackends('pool-cut')
    await cut
    await Promise.all([1, 2, 3, 4].map(() => db.one(selectOne)))
    await terminateBackends('pool-cut')
    await until('the connections are gone', async () => (await findBackends('pool-cut')).length === 0)
    const answers = await Promise.allSettled([1, 2, 3, 4, 5, 6].map(() => db.one(selectOne)))
    for (const answer of answers)
      if (answer.status === 'rejected') assert.ok(isDatabaseDown(answer.reason), String(answer.reason))
    assert.deepEqual(await db.one(selectOne), { n: 1 })
  })

  test('gives up the connection of an unanswered statement in time, and opens another one', async (t) => {
    const proxy = await startProxy(url)
    after(() => proxy.close())
    const db = openDatabase('pool-mute', { at: proxy.url, size: 2 })
    await Promise.all([db.one(selectOne), db.transaction((tx) => tx.one(selectOne))])
    proxy.swallow()
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let givenUp = 0
    const ends = [db.one(selectOne), db.transaction((tx) => tx.one(selectOne))].map((one) =>
      assert.rejects(one, isDatabaseDown).finally(() => givenUp++),
    )
    for (let second = 0; second < 31; second++) {
      assert.equal(givenUp, 0, `after ${second} s`)
      await turn()
      t.mock.timers.tick(1000)
    }
    await Promise.all(ends)
    t.mock.timers.reset()
    assert.equal(db.usage().active, 0)
    for (let i = 0; i < 3; i++) assert.deepEqual(await db.one(selectOne), { n: 1 })
  })

  test('lets the server end a slow statement before giving up its connection', async () => {
    const db = openDatabase('pool-slow', { size: 1 })
    const limit = sql.type(z.object({ ms: z.number() }))`
      select setting::int as ms from pg_settings where name = 'statement_timeout'`
    const { ms } = await db.one(limit)
    assert.ok(ms > 0 && ms < 30_000, `${ms} ms`)
    const slow = db.transaction(async (tx) => {
      await tx.run(sql.type(noRows)`set local statement_timeout = 50`)
      await tx.any(sql.type(noRows)`select pg_sleep(20)`)
    })
    await assert.rejects(slow, isFailure('database.too_slow'))
    assert.deepEqual(await db.one(limit), { ms })
  })

  test('fails as busy when a caller waits too long for a connection', async () => {
    const db = createDatabase({
      url,
      applicationName: 'pool-full',
      size: 1,
      validateRows: false,
      waitMs: 100,
    })
    openDatabases.push(db)
    const over = Promise.withResolvers<void>()
    const holding = db.transaction(() => over.promise)
    await assert.rejects(db.one(selectOne), isFailure('database.busy'))
    over.resolve()
    await holding
    assert.deepEqual(await db.one(selectOne), { n: 1 })
  })

  test('leaves nothing of a transaction that was cut off', async () => {
    const db = openDatabase('pool-cut-transaction')
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.run(insertMark('cut'))
        await terminateBackends('pool-cut-transaction')
        await tx.run(insertMark('cut'))
      }),
      isDatabaseDown,
    )
    assert.equal(await countMarks('cut'), 0)
    await db.transaction((tx) => tx.run(insertMark('whole')))
    assert.equal(await countMarks('whole'), 1)
  })

  test('reports statements that waited too long for a lock or were cancelled', async () => {
    const db = openDatabase('pool-busy')
    const holder = openDatabase('pool-holder')
    await holder.transaction(async (tx) => {
      await tx.run(sql.type(noRows)`lock table mark in access exclusive mode`)
      const waiting = query('set lock_timeout = 50; insert into mark (what) values (1)')
      await assert.rejects(waiting, { code: '55P03' })
    })
    const slow = assert.rejects(db.any(sql.type(noRows)`select pg_sleep(30)`), isFailure('database.down'))
    await waitUntilAsleep('pool-busy')
    await query(`select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'pool-busy'`)
    await slow
  })

  test('ends transaction settings with the transaction, although connections are not reset', async () => {
    const db = openDatabase('pool-settings', { size: 1 })
    await db.transaction((tx) => tx.run(sql.type(noRows)`set local statement_timeout = '7s'`))
    const { setting } = await db.one(
      sql.type(z.object({ setting: z.string() }))`select current_setting('statement_timeout') as setting`,
    )
    assert.notEqual(setting, '7s')
  })

  test('closes without waiting for a connection that was never used', async () => {
    const db = createDatabase({ url, applicationName: 'pool-close', size: 2, validateRows: false })
    await db.close()
    const used = createDatabase({ url, applicationName: 'pool-close', size: 2, validateRows: false })
    await used.one(selectOne)
    await used.close()
    await until('no backend is left', async () => (await findBackends('pool-close')).length === 0)
    for (const closed of [db, used])
      await assert.rejects(closed.one(selectOne), { code: 'database.down' }, 'as in an outage')
  })
})

describe('callers that wait for a connection', () => {
  test('all fail when the server goes away, in every round', async (t) => {
    const proxy = await startProxy(url)
    t.after(() => proxy.close())
    const db = openDatabase('pool-waiters', { at: proxy.url, size: 2 })
    const callInParallel = (call: () => Promise<unknown>): Promise<PromiseSettledResult<unknown>[]> =>
      Promise.allSettled(Array.from({ length: 8 }, call))
    for (let round = 0; round < countRounds(40); round++) {
      const before = callInParallel(() => db.any(sql.type(noRows)`select pg_sleep(0.01)`))
      if (round % 2) await delay(round % 7)
      await proxy.refuse()
      const meanwhile = callInParallel(() => db.one(selectOne))
      if (round % 3) await delay(round % 5)
      await proxy.accept()
      const all = Promise.all([before, meanwhile, callInParallel(() => db.one(selectOne))])
      const ends = await Promise.race([all, delay(30_000, null, { ref: false })])
      assert.ok(ends !== null, `round ${round}: a caller waits forever`)
      for (const end of ends.flat())
        if (end.status === 'rejected') assert.ok(isDatabaseDown(end.reason), String(end.reason))
    }
  })
})

test('an error of a connection is an outage, unless its cause says otherwise', () => {
  const mapError = (cause: object): unknown =>
    mapDatabaseError(new ConnectionError('No connection', { cause: Object.assign(new Error('Why'), cause) }))
  assert.ok(mapDatabaseError(new ConnectionError('Client is pending destroy.')) instanceof Failure)
  assert.equal((mapError({}) as Failure).code, 'database.down')
  assert.equal((mapError({ code: '57P03' }) as Failure).code, 'database.down')
  assert.equal((mapError({ code: '53300' }) as Failure).code, 'database.busy')
  for (const code of ['53000', '53200', '53400'])
    assert.equal(
      (mapError({ code }) as Failure).code,
      'database.busy',
      'it may be the statement that takes too much',
    )
  for (const code of ['53100', '58030']) assert.equal((mapError({ code }) as Failure).code, 'database.down')
  const message = 'too many notifications in the NOTIFY queue'
  assert.equal((mapError({ code: '54000', message }) as Failure).code, 'database.down')
  assert.ok(mapError({ code: '54000', message: 'index row size exceeds' }) instanceof ConnectionError)
  assert.ok(mapError({ code: '28P01' }) instanceof ConnectionError, 'a wrong password does not pass')
})
