import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connectSocket } from '../../sql/connections/driver.ts'
import { Wire, WireError } from '../../sql/connections/wire.ts'
import { sharedDatabase } from './shared-database.ts'

const { url, query } = await sharedDatabase()
const wire = new Wire(await connectSocket({ url, applicationName: 'wire-test' }), 30_000)
after(() => wire.close())

const echo = { name: 'echo', text: 'select $1::text' }
const invalidStatement = { name: 'broken', text: 'select no_such_column' }
const divide = { name: 'divide', text: 'select (10 / $1::int)::text' }

test('gives each of many concurrent reads its own answer, in any batches', async () => {
  const answers = await Promise.all(Array.from({ length: 1000 }, (_, n) => wire.read(echo, [`answer ${n}`])))
  assert.deepEqual(
    answers,
    Array.from({ length: 1000 }, (_, n) => [`answer ${n}`]),
  )
})

test('fails only the read with the error, and repeats reads that the server skipped', async () => {
  const divisors = Array.from({ length: 300 }, (_, n) => n % 7)
  const answers = await Promise.allSettled(divisors.map((n) => wire.read(divide, [n])))
  for (const [index, answer] of answers.entries()) {
    const divisor = divisors[index]!
    if (divisor !== 0)
      assert.deepEqual(answer, { status: 'fulfilled', value: [String(Math.trunc(10 / divisor))] })
    else assert.equal((answer as PromiseRejectedResult).reason.code, '22012')
  }
})

test('fails an invalid statement each time, but not others next to it', async () => {
  const [first, good, second] = await Promise.allSettled([
    wire.read(invalidStatement, []),
    wire.read({ name: 'beside', text: 'select 1::text' }, []),
    wire.read(invalidStatement, []),
  ])
  assert.ok(first.status === 'rejected' && first.reason instanceof WireError)
  assert.equal(first.reason.code, '42703')
  assert.deepEqual(good, { status: 'fulfilled', value: ['1'] })
  assert.equal(second.status, 'rejected')
})

test('sends a statement again if the server has lost it', async () => {
  await wire.read(echo, ['before'])
  await wire.read({ name: 'forget', text: 'deallocate all' }, [])
  assert.deepEqual(await Promise.all([wire.read(echo, ['a']), wire.read(echo, ['b'])]), [['a'], ['b']])
})

test('returns values of every kind unchanged', async () => {
  const one = async (text: string, value: Parameters<Wire['read']>[1][number]): Promise<unknown> =>
    (await wire.read({ name: `v${text}`, text: `select ${text}` }, [value]))[0]
  assert.equal(await one('$1::text', 'ä 𝄞 \\ " { } , \t'), 'ä 𝄞 \\ " { } , \t')
  assert.equal(await one('coalesce($1::text, $1::text)', null), null)
  assert.equal(await one('($1::int + 1)::text', 41), '42')
  assert.equal(await one('(not $1::boolean)::text', false), 'true')
  assert.equal(
    await one('to_json($1::text[])::text', ['a"b', 'c\\d', 'e,f', '']),
    '["a\\"b","c\\\\d","e,f",""]',
  )
  assert.equal(await one('to_json($1::int[])::text', [1, -2]), '[1,-2]')
  assert.equal(await one('repeat($1::text, 200000)', 'xyz'), 'xyz'.repeat(200_000))
})

test('returns many rows and none', async () => {
  assert.equal(
    (await wire.read({ name: 'rows', text: 'select n::text from generate_series(1, $1::int) n' }, [5000]))
      .length,
    5000,
  )
  assert.deepEqual(await wire.read({ name: 'none', text: 'select 1::text where $1::boolean' }, [false]), [])
})

test('fails current and later reads when the connection is lost', async () => {
  const lost = new Wire(await connectSocket({ url, applicationName: 'wire-lost' }), 30_000)
  const failed = assert.rejects(lost.read({ name: 'slow', text: 'select pg_sleep(60)::text' }, []))
  const [{ pid }] = (await query(
    "select pid from pg_stat_activity where application_name = 'wire-lost' and query like '%pg_sleep%'",
  ).then(async (rows) =>
    rows.length > 0
      ? rows
      : await query("select pid from pg_stat_activity where application_name = 'wire-lost'"),
  )) as [{ pid: number }]
  await query('select pg_terminate_backend($1)', [pid])
  await failed
  assert.equal(lost.isBroken, true)
  await assert.rejects(lost.read(echo, ['x']), /Connection terminated/)
})

test('answers current reads before it closes', async () => {
  const closing = new Wire(await connectSocket({ url, applicationName: 'wire-closing' }), 30_000)
  const answer = closing.read(echo, ['last'])
  await closing.close()
  assert.deepEqual(await answer, ['last'])
})

test('gives up a server that does not answer', async () => {
  const silent = new Wire(await connectSocket({ url, applicationName: 'wire-silent' }), 200)
  await assert.rejects(
    silent.read({ name: 'sleep', text: 'select pg_sleep(30)::text' }, []),
    /does not answer/,
  )
})
