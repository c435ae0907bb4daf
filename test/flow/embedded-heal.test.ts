import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { identifyProcess } from '../../sql/server/embedded/processes.ts'
import {
  copyUsedFolder,
  createFolder,
  killChild,
  queryRows,
  readPostmasterPid,
  startDatabase,
  startInChild,
  until,
} from './embedded-help.ts'

test('a start after a crash of owner and server recovers all commits', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const owner = await startInChild(t, dataDir)
  await queryRows(owner.url, 'create table kept as select 42 as answer')
  const pid = readPostmasterPid(dataDir)
  await killChild(owner.child)
  process.kill(pid, 'SIGKILL')
  const database = await startDatabase(t, dataDir)
  assert.deepEqual(await queryRows(database.url, 'select answer from kept'), [{ answer: 42 }])
  assert.match(readFileSync(path.join(dataDir, 'postgres.log'), 'utf8'), /automatic recovery/)
})

test('a start replaces a server that outlived its owner', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const owner = await startInChild(t, dataDir)
  await queryRows(owner.url, 'create table kept as select 42 as answer')
  const pid = readPostmasterPid(dataDir)
  await killChild(owner.child)
  const lines: string[] = []
  const database = await startDatabase(t, dataDir, { log: (line) => lines.push(line) })
  assert.notEqual(readPostmasterPid(dataDir), pid)
  assert.match(lines.join('\n'), new RegExp(`${pid}, whose owner is gone`))
  assert.deepEqual(await queryRows(database.url, 'select answer from kept'), [{ answer: 42 }])
})

test('a start ends a busy backend that outlived its server', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const owner = await startInChild(t, dataDir)
  const client = await connect({ url: owner.url, applicationName: 'busy' })
  const [row] = (await client.query('select pg_backend_pid() as pid')).rows
  const gone = new Promise((resolve) => client.once('end', resolve))
  // The loop takes no locks and never waits, so the backend never checks whether its postmaster is alive.
  client.query('do $$ begin loop perform 1; end loop; end $$').catch(() => {})
  await until(async () => {
    const [activity] = await queryRows(owner.url, `select state from pg_stat_activity where pid = ${row.pid}`)
    return activity?.state === 'active'
  })
  const pid = readPostmasterPid(dataDir)
  await killChild(owner.child)
  process.kill(pid, 'SIGKILL')
  assert.notEqual(identifyProcess(Number(row.pid)), undefined)
  const database = await startDatabase(t, dataDir)
  await gone
  assert.equal(identifyProcess(Number(row.pid)), undefined)
  assert.equal((await queryRows(database.url, 'select 1')).length, 1)
})

test('a server that dies is restarted under the same URL', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const lines: string[] = []
  const database = await startDatabase(t, dataDir, {
    settings: { synchronous_commit: 'on' },
    log: (line) => lines.push(line),
  })
  await queryRows(database.url, 'create table kept as select 42 as answer')
  const pid = readPostmasterPid(dataDir)
  process.kill(pid, 'SIGKILL')
  await until(() =>
    queryRows(database.url, 'select answer from kept').then(
      (rows) => rows.length === 1,
      () => false,
    ),
  )
  assert.notEqual(readPostmasterPid(dataDir), pid)
  assert.match(lines.join('\n'), /died \(SIGKILL\)/)
})

test('stopping during a restart of the server leaves nothing running', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const lines: string[] = []
  const database = await startDatabase(t, dataDir, { log: (line) => lines.push(line) })
  process.kill(readPostmasterPid(dataDir), 'SIGKILL')
  await until(() => lines.some((line) => line.includes('died')))
  await database.stop()
  assert.ok(!existsSync(path.join(dataDir, 'postgres/postmaster.pid')))
  await assert.rejects(queryRows(database.url, 'select 1'))
})

test('removes pid files that are empty or name another program', async (t) => {
  const dataDir = await copyUsedFolder(t)
  await (await startDatabase(t, dataDir)).stop()
  for (const content of [`${process.pid}\n${dataDir}/postgres\n`, '']) {
    writeFileSync(path.join(dataDir, 'postgres/postmaster.pid'), content)
    const database = await startDatabase(t, dataDir)
    assert.equal((await queryRows(database.url, 'select 1')).length, 1)
    await database.stop()
  }
})

test('takes over a lock whose pid was reused, and removes an unfinished first start', async (t) => {
  const dataDir = createFolder(t)
  writeFileSync(path.join(dataDir, 'lock'), JSON.stringify({ pid: process.pid, started: 'earlier' }))
  mkdirSync(path.join(dataDir, 'postgres.new'))
  writeFileSync(path.join(dataDir, 'postgres.new/PG_VERSION'), '')
  await startDatabase(t, dataDir)
  assert.ok(!existsSync(path.join(dataDir, 'postgres.new')))
})

test('a start sets the new password that a failed start could not set', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const conf = path.join(dataDir, 'postgres/postgresql.conf')
  const right = readFileSync(conf, 'utf8')
  rmSync(path.join(dataDir, 'postgres.password'))
  writeFileSync(conf, `${right}\nnonsense = on\n`)
  await assert.rejects(startDatabase(t, dataDir), /unrecognized configuration parameter "nonsense"/)
  writeFileSync(conf, right)
  const database = await startDatabase(t, dataDir)
  assert.equal((await queryRows(database.url, 'select 1')).length, 1)
})
