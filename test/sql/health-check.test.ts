import assert from 'node:assert/strict'
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { ConnectionGroup, connect } from '../../sql/connections/driver.ts'
import { type DatabaseState, startHealthCheck } from '../../sql/connections/health-check.ts'
import { createDatabase, noRows, sql } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { countKeptObjects, REPETITIONS } from './kept-objects.ts'
import { startProxy } from './proxy.ts'

const { url, query } = await createTestDatabase()
const selectOne = sql.type(z.object({ n: z.number() }))`select 1 as n`
const text = { name: 'health_one', text: "select '1'" }
const isDatabaseDown = (error: unknown) => error instanceof Failure && error.code === 'database.down'

test('detects a database that stops answering, fails waiting requests immediately, and recovers', async () => {
  const proxy = await startProxy(url)
  const connections = new ConnectionGroup()
  const states: DatabaseState[] = []
  const healthCheck = await startHealthCheck({
    url: proxy.url,
    applicationName: 'healthCheck',
    connections,
    onChange: (state) => states.push(state),
    intervalMs: 200,
  })
  const isSilent = () => healthCheck.state === 'silent'
  const common = { url: proxy.url, applicationName: 'checked', connections }
  const db = createDatabase({ ...common, size: 2, validateRows: false })
  const reader = await createReader(common)
  after(async () => {
    await Promise.all([healthCheck.close(), db.close(), reader.close()])
    await proxy.close()
  })
  assert.deepEqual([await db.one(selectOne), await reader.text(text, [])], [{ n: 1 }, '1'])

  proxy.swallow(true)
  const held = [
    db.one(selectOne),
    db.transaction((tx) => tx.one(selectOne)),
    db.one(selectOne),
    reader.text(text, []),
  ]
  let ended = 0
  const ends = held.map((one) => assert.rejects(one, isDatabaseDown).then(() => ended++))
  await until('the silence is detected', isSilent)
  // All requests fail together, before their own timeouts.
  for (let n = 0; n < 20; n++) await turn()
  assert.equal(ended, held.length)
  await Promise.all(ends)
  let refused = 0
  const refusals = [db.one(selectOne), reader.text(text, [])].map((one) =>
    assert.rejects(one, isDatabaseDown).then(() => refused++),
  )
  await turn()
  assert.equal(refused, refusals.length, 'nothing is asked of it')

  await proxy.refuse()
  await proxy.accept()
  await until('the database is writable again', () => healthCheck.state === 'writable')
  assert.deepEqual([await db.one(selectOne), await reader.text(text, [])], [{ n: 1 }, '1'])
  assert.deepEqual(states, ['silent', 'writable'])
})

test('detects a read-only database, and compares its clock with ours', async () => {
  const states: DatabaseState[] = []
  const connections = new ConnectionGroup()
  const healthCheck = await startHealthCheck({
    url,
    applicationName: 'healthCheck-read-only',
    connections,
    onChange: (state) => states.push(state),
    intervalMs: 20,
    answerMs: 30_000,
  })
  after(() => healthCheck.close())
  // While answers are slow, the server's time is known only roughly, so the first clock offsets are inaccurate.
  await until('the clock offset is small', () => Math.abs(healthCheck.clockOffsetMs) < 1_000)
  const name = new URL(url).pathname.slice(1)
  await query(`alter database ${name} set default_transaction_read_only = on`)
  await query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'healthCheck-read-only'`,
  )
  await until('it is read-only', () => healthCheck.state === 'read-only')
  const db = createDatabase({ url, applicationName: 'read-only', size: 1, validateRows: false })
  after(() => db.close())
  await assert.rejects(db.run(sql.type(noRows)`create table refused (n int)`), isDatabaseDown)
  const client = await connect({ url, applicationName: 'healer' })
  await client.query('set default_transaction_read_only = off')
  await client.query(`alter database ${name} reset default_transaction_read_only`)
  await client.end()
  await query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'healthCheck-read-only'`,
  )
  await until('it is writable', () => healthCheck.state === 'writable')
  assert.deepEqual(states, ['read-only', 'writable'], 'a closed connection alone is no silence')
})

test('its time stays correct while the clock of this process is changed', async (t) => {
  let probes = 0
  const healthCheck = await startHealthCheck({
    url,
    applicationName: 'healthCheck-clock',
    connections: new ConnectionGroup(),
    onChange: () => {},
    onValue: () => void probes++,
    intervalMs: 20,
  })
  after(() => healthCheck.close())
  const [row] = await query('select (extract(epoch from clock_timestamp()) * 1000)::float8 as now')
  const isRight = () => Math.abs(healthCheck.now() - (row!.now as number)) < 60_000
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  assert.ok(isRight(), 'set, before it has asked again')
  const asked = probes
  // Waits for two probes, because the first may have started before the clock was set.
  while (probes < asked + 2) await turn()
  assert.ok(isRight(), 'set, once it has asked again')
  t.mock.timers.reset()
  assert.ok(isRight(), 'set back, before it has asked again')
})

test('fails if the server is down at the start', async () => {
  const gone = startHealthCheck({
    url: 'postgresql://nobody@127.0.0.1:1/none',
    applicationName: 'gone',
    connections: new ConnectionGroup(),
    onChange: () => {},
  })
  await assert.rejects(gone, /ECONNREFUSED/)
})

test('a probe leaves no objects in memory', async () => {
  const kept = await countKeptObjects('probes', url)
  assert.ok(kept < REPETITIONS / 5, `${kept} objects of ${REPETITIONS} probes`)
})

test('reports silence if it connects but gets no answer, and pauses between attempts', async () => {
  const pooler = await startPooler()
  const healthCheck = await startHealthCheck({
    url: pooler.url,
    applicationName: 'healthCheck-refused',
    connections: new ConnectionGroup(),
    onChange: () => {},
    intervalMs: 20,
  })
  after(async () => {
    await healthCheck.close()
    pooler.close()
  })
  assert.equal(healthCheck.state, 'writable')
  pooler.isAway = true
  const before = pooler.accepted
  await until('the silence is detected', () => healthCheck.state === 'silent')
  assert.ok(pooler.accepted - before <= 2, `it connected ${pooler.accepted - before} times`)
  pooler.isAway = false
  await until('the database is writable again', () => healthCheck.state === 'writable')
})

test('goes on with a server whose logins take longer than an answer may', async () => {
  let probes = 0
  const states: DatabaseState[] = []
  const applicationName = 'healthCheck-login'
  const healthCheck = await startHealthCheck({
    url: `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent('-c post_auth_delay=1')}`,
    applicationName,
    connections: new ConnectionGroup(),
    onChange: (state) => states.push(state),
    onValue: () => void probes++,
    intervalMs: 20,
    answerMs: 500,
  })
  after(() => healthCheck.close())
  await query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${applicationName}'`,
  )
  const before = probes
  await until('it probes over a new connection', () => probes > before + 3)
  assert.deepEqual(states, [])
})

test('waits longer for an answer after each silence', async () => {
  const proxy = await startProxy(url)
  const silences: string[] = []
  const healthCheck = await startHealthCheck({
    url: proxy.url,
    applicationName: 'healthCheck-patience',
    connections: new ConnectionGroup(),
    onChange: (state, error) => state === 'silent' && silences.push(String((error as Failure).cause)),
    intervalMs: 20,
    answerMs: 100,
  })
  after(async () => {
    await healthCheck.close()
    await proxy.close()
  })
  for (let n = 1; n <= 4; n++) {
    proxy.swallow()
    await until('the silence is detected', () => silences.length === n)
    await until('the database is writable again', () => healthCheck.state === 'writable')
  }
  assert.deepEqual(
    silences.map((text) => /\d+ ms/.exec(text)?.[0]),
    ['100 ms', '200 ms', '400 ms', '400 ms'],
  )
})

/** Starts a pooler that accepts clients while its server is down, and answers their first query with an error. */
async function startPooler() {
  const { hostname, port, username, password, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  const target = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port: Number(port) }
  const sockets = new Set<Socket>()
  const pooler = { url: '', isAway: false, accepted: 0, close: () => {} }
  const server = createServer((client) => {
    pooler.accepted++
    const up = connectSocket(target)
    up.on('data', (chunk) => client.write(chunk))
    client.on('data', (chunk) => {
      if (pooler.isAway && chunk[0] === QUERY) client.end(SERVER_DOWN)
      else up.write(chunk)
    })
    for (const [one, other] of [
      [client, up],
      [up, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {}).on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const own = server.address() as AddressInfo
  pooler.url = `postgresql://${username}:${password}@127.0.0.1:${own.port}${pathname}`
  pooler.close = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return pooler
}

// https://www.postgresql.org/docs/current/protocol-message-formats.html
const QUERY = 'Q'.charCodeAt(0)
const FIELDS = 'SFATAL\0VFATAL\0C08006\0Mthe server is away\0\0'
const SERVER_DOWN = Buffer.from(`E\0\0\0${String.fromCharCode(FIELDS.length + 4)}${FIELDS}`, 'latin1')
