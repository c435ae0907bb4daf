import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { connect } from '../../sql/connections/driver.ts'
import { Failure } from '../../sql/errors.ts'
import { createReader, type Reader, type ReadStatement, type ReadValue } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions } from '../runs.ts'
import { until } from '../until.ts'
import { startProxy } from './proxy.ts'

const { url, query } = await createTestDatabase()
const openReaders: Reader[] = []
after(() => Promise.all(openReaders.map((reader) => reader.close())))

async function openReader(applicationName: string, at = url): Promise<Reader> {
  const reader = await createReader({ url: at, applicationName })
  openReaders.push(reader)
  return reader
}

const createStatement = <P extends readonly ReadValue[] = []>(
  text: string,
  name = text,
): ReadStatement<P> => ({
  name,
  text,
})
const echo = createStatement<[text: string]>('select $1::text')
const divide = createStatement<[by: number]>('select (100 / $1::int)::text')
const sleep = createStatement<[text: string, seconds: number]>(`select $1::text from pg_sleep($2::float8)`)

const lockedEcho = createStatement<[text: string]>('select $1::text from pg_advisory_xact_lock_shared(1)')

const terminateBackends = (name: string) =>
  query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [name])
const countConnections = async (name: string): Promise<number> =>
  (await query('select pid from pg_stat_activity where application_name = $1', [name])).length

const isFailure = (code: string) => (error: unknown) => error instanceof Failure && error.code === code

test('values of the wrong types do not compile', async () => {
  const reader: Reader = {
    text: async () => null,
    texts: async () => [],
    close: async () => {},
  }
  const pair = createStatement<[name: string, count: number | null]>('select $1::text || $2::int')
  const values = ['a', 1] as const
  await reader.text(pair, values)
  await reader.texts(pair, ['a', null])
  // @ts-expect-error one value too few
  await reader.text(pair, ['a'])
  // @ts-expect-error one value too many
  await reader.text(pair, ['a', 1, 2])
  // @ts-expect-error values in the wrong order
  await reader.text(pair, [1, 'a'])
  // @ts-expect-error null is allowed, but undefined is not
  await reader.texts(pair, ['a', undefined])
  // @ts-expect-error a numeric string is not a number
  await reader.texts(pair, ['a', '1'])
  // @ts-expect-error a statement without declared parameters takes none
  await reader.text({ name: 'echo', text: 'select $1::text' }, ['a'])
  // @ts-expect-error the statement does not accept null
  const wider: ReadStatement<[text: string | null]> = echo
  assert.equal(wider, echo)
})

describe('a reader', () => {
  test('gives many concurrent callers the right answers, even if other reads fail', async () => {
    const reader = await openReader('reader-many')
    const read = fc.oneof(
      fc.record({ kind: fc.constant('echo' as const), value: fc.string() }),
      fc.record({ kind: fc.constant('divide' as const), by: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ kind: fc.constant('new' as const), n: fc.nat({ max: 400 }) }),
      fc.record({ kind: fc.constant('bad' as const), n: fc.nat({ max: 30 }) }),
      fc.record({ kind: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 3 }) }),
    )
    const run = async (one: typeof read extends fc.Arbitrary<infer T> ? T : never): Promise<void> => {
      switch (one.kind) {
        case 'echo': {
          // PostgreSQL accepts no NUL.
          if (one.value.includes('\0')) return assert.rejects(reader.text(echo, [one.value]))
          return assert.equal(await reader.text(echo, [one.value]), one.value)
        }
        case 'divide':
          if (one.by === 0) return assert.rejects(reader.text(divide, [0]), { code: '22012' })
          return assert.equal(await reader.text(divide, [one.by]), String(Math.trunc(100 / one.by)))
        case 'new':
          return assert.equal(
            await reader.text(createStatement(`select '${one.n}'`, `new-${one.n}`), []),
            String(one.n),
          )
        case 'bad':
          return assert.rejects(reader.text(createStatement(`select missing_${one.n}`), []), {
            code: '42703',
          })
        case 'wait':
          for (let i = 0; i < one.turns; i++) await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(read, { minLength: 5, maxLength: 12 }), { minLength: 20, maxLength: 40 }),
        async (callers) => {
          await Promise.all(
            callers.map(async (reads) => {
              for (const one of reads) await run(one)
            }),
          )
        },
      ),
      { ...createRunOptions(40), endOnFailure: true },
    )
    assert.equal(await countConnections('reader-many'), 1)
  })

  test('answers callers in order, without waiting for a connection', async () => {
    const reader = await openReader('reader-order')
    const order: number[] = []
    await Promise.all(
      [0.1, 0, 0].map((seconds, i) => reader.text(sleep, [String(i), seconds]).then(() => order.push(i))),
    )
    assert.deepEqual(order, [0, 1, 2])
  })

  test('repeats reads that a terminated backend cut off, over a new connection', async () => {
    const reader = await openReader('reader-cut')
    const holder = await connect({ url, applicationName: 'holder' })
    after(() => holder.end())
    await holder.query('select pg_advisory_lock(1)')
    const reads = Array.from({ length: 200 }, (_, i) =>
      i === 0 ? reader.text(lockedEcho, ['0']) : reader.text(echo, [String(i)]),
    )
    await until('the first read waits', async () => {
      const text = `select from pg_stat_activity where application_name = 'reader-cut' and wait_event_type = 'Lock'`
      return (await query(text)).length > 0
    })
    await terminateBackends('reader-cut')
    await holder.query('select pg_advisory_unlock(1)')
    assert.deepEqual(
      await Promise.all(reads),
      Array.from({ length: 200 }, (_, i) => String(i)),
    )
    assert.equal(await reader.text(echo, ['after']), 'after')
    await until('the other connection is gone', async () => (await countConnections('reader-cut')) === 1)
  })

  test('loses no read while its backends are terminated under load', async () => {
    const reader = await openReader('reader-storm')
    const callers = 20
    let answered = 0
    let kills = 0
    let stop = false
    const killer = (async () => {
      for (let before = 0; !stop; before = answered) {
        // Answers come in order, so all reads that earlier kills interrupted have been answered by then.
        await until(
          'all reads of the last round have been answered',
          () => stop || answered >= before + 2 * callers,
          60_000,
        )
        await terminateBackends('reader-storm')
        kills++
      }
    })()
    const calls = Array.from({ length: callers }, async (_, caller) => {
      for (let i = 0; i < 60 || kills <= 5; i++) {
        assert.equal(await reader.text(echo, [`${caller}/${i}`]), `${caller}/${i}`)
        answered++
        await delay(5)
      }
    })
    await Promise.all(calls)
    stop = true
    await killer
    assert.ok(kills > 5, `${kills} kills`)
  })

  test('replaces an idle connection that was cut, without an error', async () => {
    const reader = await openReader('reader-idle')
    await reader.text(echo, ['x'])
    await terminateBackends('reader-idle')
    await until('the connection is gone', async () => (await countConnections('reader-idle')) === 0)
    assert.equal(await reader.text(echo, ['y']), 'y')
  })

  test('fails as an outage while the server is unreachable, and then recovers', async () => {
    const proxy = await startProxy(url)
    after(() => proxy.close())
    const reader = await openReader('reader-outage', proxy.url)
    await proxy.refuse()
    await assert.rejects(reader.text(echo, ['x']), isFailure('database.down'))
    await assert.rejects(
      Promise.all([1, 2, 3].map((n) => reader.text(echo, [String(n)]))),
      isFailure('database.down'),
    )
    await proxy.accept()
    assert.equal(await reader.text(echo, ['y']), 'y')
    assert.equal(
      (await reader.texts(createStatement('select n::text from generate_series(1, 3) n'), [])).length,
      3,
    )
  })

  test('reports a statement that the server cancelled, and does not repeat it', async () => {
    const reader = await openReader('reader-cancel')
    const slow = reader.text(sleep, ['x', 30])
    // PostgreSQL ignores a cancel signal that arrives before the statement begins, so the test repeats it.
    const again = setInterval(() => {
      void query(
        `select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'reader-cancel'`,
      ).catch(() => {})
    }, 50)
    await slow.catch(() => {})
    clearInterval(again)
    await assert.rejects(slow, isFailure('database.down'))
  })

  test('returns null for no row and for null, and other rows unchanged', async () => {
    const reader = await openReader('reader-null')
    assert.equal(await reader.text(createStatement('select 1::text where false'), []), null)
    assert.equal(await reader.text(createStatement('select null::text'), []), null)
    assert.deepEqual(
      await reader.texts(createStatement(`select * from (values ('a'), (null), ('c')) v`), []),
      ['a', '', 'c'],
    )
  })

  test('answers a large read and the small ones behind it quickly', async () => {
    const reader = await openReader('reader-large')
    const large = createStatement<[text: string, times: number]>('select repeat($1::text, $2::int)')
    const startedAt = Date.now()
    const [text, small] = await Promise.all([
      reader.text(large, ['0123456789', 4_000_000]),
      reader.text(echo, ['s']),
    ])
    assert.deepEqual([text!.length, small], [40_000_000, 's'])
    assert.ok(Date.now() - startedAt < 10_000, `took ${Date.now() - startedAt} ms`)
  })

  test('reads nothing after close, and leaves no connection', async () => {
    const reader = await createReader({ url, applicationName: 'reader-close' })
    const last = reader.text(sleep, ['last', 0.1])
    await delay(20)
    await reader.close()
    assert.equal(await last, 'last')
    await assert.rejects(reader.text(echo, ['x']))
    await until('the connection is closed', async () => (await countConnections('reader-close')) === 0)
  })
})
