import assert from 'node:assert/strict'
import { appendFileSync, existsSync, statSync, truncateSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createPool, sql } from 'slonik'
import { startEmbedded } from '../../sql/server/embedded/embedded.ts'
import { identifyProcess } from '../../sql/server/embedded/processes.ts'
import { copyUsedFolder, createFolder, queryRows, readPostmasterPid, startDatabase } from './embedded-help.ts'

test('a first start creates the database, and a second one keeps its rows and password', async (t) => {
  const dataDir = path.join(createFolder(t), 'not/yet/there')
  const first = await startDatabase(t, dataDir, { ephemeral: false })
  await queryRows(first.url, "create table kept as select 'still here' as word")
  const [facts] = await queryRows(
    first.url,
    `select current_database() as name, lower('ÄÖ') as lower, current_setting('timezone') as zone,
       current_setting('fsync') as fsync, inet_server_addr() as address`,
  )
  assert.deepEqual(facts, { name: 'millrace', lower: 'äö', zone: 'UTC', fsync: 'on', address: null })
  await first.stop()

  const made = statSync(path.join(dataDir, 'postgres/PG_VERSION'))
  const second = await startDatabase(t, dataDir, { ephemeral: false })
  assert.deepEqual(await queryRows(second.url, 'select word from kept'), [{ word: 'still here' }])
  assert.equal(new URL(second.url).password, new URL(first.url).password)
  const kept = statSync(path.join(dataDir, 'postgres/PG_VERSION'))
  assert.deepEqual([kept.ino, kept.ctimeMs], [made.ino, made.ctimeMs], 'the second start creates nothing')
})

test('a running database', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const database = await startDatabase(t, dataDir, { settings: { max_connections: '33', work_mem: '5MB' } })

  await t.test('its URL works with slonik and can name other databases', async (t) => {
    const pool = await createPool(database.url)
    t.after(() => pool.end())
    assert.equal(await pool.oneFirst(sql.unsafe`select current_database()`), 'millrace')
    await queryRows(database.urlFor('postgres'), 'create database "odd name"')
    assert.deepEqual(await queryRows(database.urlFor('odd name'), 'select current_database() as name'), [
      { name: 'odd name' },
    ])
    await pool.end()
  })

  await t.test('requires the password over the socket and over TCP', async () => {
    assert.equal(statSync(path.join(dataDir, 'postgres.password')).mode & 0o777, 0o600)
    const { port, password } = new URL(database.url)
    const tcp = `postgresql://postgres:${password}@127.0.0.1:${port}/millrace`
    assert.equal((await queryRows(tcp, 'select 1')).length, 1)
    await assert.rejects(queryRows(tcp.replace(password, 'wrong'), 'select 1'), { code: '28P01' })
    await assert.rejects(queryRows(database.url.replace(password, 'wrong'), 'select 1'), { code: '28P01' })
  })

  await t.test('custom settings override the defaults, and tests do not flush', async () => {
    const [settings] = await queryRows(
      database.url,
      `select current_setting('max_connections') as connections, current_setting('work_mem') as memory,
         current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit`,
    )
    assert.deepEqual(settings, { connections: '33', memory: '5MB', fsync: 'off', commit: 'off' })
  })
})

test('supports a data folder whose path is too long for a socket', async (t) => {
  const dataDir = path.join(createFolder(t), 'long'.repeat(30), `with blanks, and 'quotes"`)
  const database = await startDatabase(t, dataDir)
  assert.equal((await queryRows(database.url, 'select 1')).length, 1)
  const sockets = decodeURIComponent(new URL(database.url).hostname)
  assert.ok(Buffer.byteLength(sockets) <= 87, sockets)
  assert.equal(statSync(sockets).mode & 0o777, 0o700)
  await database.stop()
  assert.ok(!existsSync(sockets))
})

test('a setting that PostgreSQL rejects fails the start with its message and releases the folder', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const settings = { max_connections: 'many' }
  await assert.rejects(startEmbedded({ dataDir, ephemeral: true, settings }), /max_connections.*"many"/s)
  await startDatabase(t, dataDir)
})

test('a stop is bounded and can be called twice', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const database = await startDatabase(t, dataDir, { stopTimeoutMs: 100 })
  const pid = readPostmasterPid(dataDir)
  process.kill(pid, 'SIGSTOP') // A frozen server reacts to neither a fast nor an immediate shutdown.
  const began = performance.now()
  await Promise.all([database.stop(), database.stop()])
  assert.ok(performance.now() - began < 20_000)
  assert.equal(identifyProcess(pid), undefined)
})

test('recreates a dropped database, replaces a lost password and empties a huge log', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const first = await startDatabase(t, dataDir)
  await queryRows(first.urlFor('postgres'), 'drop database millrace')
  await first.stop()
  const log = path.join(dataDir, 'postgres.log')
  appendFileSync(log, 'x')
  truncateSync(log, 11 * 1024 * 1024)
  truncateSync(path.join(dataDir, 'postgres.password'))
  const second = await startDatabase(t, dataDir)
  assert.equal((await queryRows(second.url, 'select 1')).length, 1)
  assert.notEqual(new URL(second.url).password, new URL(first.url).password)
  assert.ok(statSync(log).size < 1024 * 1024)
})
