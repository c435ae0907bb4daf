import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startEmbedded } from '../../sql/server/embedded/embedded.ts'
import {
  copyUsedFolder,
  createFolder,
  killChild,
  queryRows,
  startDatabase,
  startInChild,
  stopChild,
} from './embedded-help.ts'

test('rejects a folder with other contents and leaves it unchanged', async (t) => {
  const dataDir = createFolder(t)
  mkdirSync(path.join(dataDir, 'postgres'))
  writeFileSync(path.join(dataDir, 'postgres/letter.txt'), 'dear reader')
  await assert.rejects(
    startEmbedded({ dataDir }),
    /holds no PostgreSQL database.*left unchanged.*DATABASE_URL/s,
  )
  assert.deepEqual(readdirSync(path.join(dataDir, 'postgres')), ['letter.txt'])
  assert.deepEqual(readdirSync(dataDir), ['postgres'])
})

test('rejects an impossible folder and names the setting', async (t) => {
  const base = createFolder(t)
  const file = path.join(base, 'file')
  writeFileSync(file, '')
  const link = path.join(base, 'link')
  symlinkSync(path.join(base, 'missing'), link)
  for (const [dataDir, reason] of [
    [file, 'a part of its path is a file'],
    [path.join(file, 'deep/er'), 'a part of its path is a file'],
    [link, 'a part of its path is a link to nothing'],
    [path.join(link, 'deeper'), 'a part of its path is a link to nothing'],
    // Node's recursive mkdir would never return here.
    ['/proc/millrace/data', 'its file system accepts no folders'],
  ] as const)
    await assert.rejects(startEmbedded({ dataDir }), {
      name: 'Error',
      message: `DATA_DIR can't be ${dataDir}: ${reason}. Set a folder to which this user may write.`,
    })
})

test('rejects data of another major version', async (t) => {
  const dataDir = createFolder(t)
  mkdirSync(path.join(dataDir, 'postgres'))
  writeFileSync(path.join(dataDir, 'postgres/PG_VERSION'), '16\n')
  await assert.rejects(startEmbedded({ dataDir }), /made by PostgreSQL 16, but this is \d+: dump it/)
})

test('rejects a second start in the same process until the first has stopped', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const first = await startDatabase(t, dataDir)
  await assert.rejects(startEmbedded({ dataDir }), new RegExp(`already running \\(pid ${process.pid}\\)`))
  assert.equal((await queryRows(first.url, 'select 1')).length, 1)
  await first.stop()
  await startDatabase(t, dataDir)
})

test('rejects a start while another process owns the data', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const owner = await startInChild(t, dataDir)
  await assert.rejects(startEmbedded({ dataDir }), new RegExp(`already running \\(pid ${owner.child.pid}\\)`))
  await stopChild(owner)
  await startDatabase(t, dataDir)
})

test('starts a copy of a folder while another process runs the original', async (t) => {
  const dataDir = await copyUsedFolder(t)
  const owner = await startInChild(t, dataDir)
  const copy = createFolder(t)
  execFileSync('cp', ['-a', `${dataDir}/.`, copy])
  const { url } = await startDatabase(t, copy)
  assert.notEqual(url, owner.url)
  assert.equal((await queryRows(owner.url, 'select 1')).length, 1)
  await stopChild(owner)
})

test('of concurrent starts on a stale lock, exactly one succeeds', async (t) => {
  const dataDir = await copyUsedFolder(t)
  await killChild((await startInChild(t, dataDir)).child)
  const owners = await Promise.all([1, 2, 3].map(() => startInChild(t, dataDir)))
  const winners = owners.filter((owner) => owner.url !== '')
  assert.equal(winners.length, 1)
  for (const owner of owners) if (owner.url === '') assert.match(owner.error, /already running/)
  await stopChild(winners[0]!)
})

test('rejects a start if it cannot read the lock', async (t) => {
  const dataDir = createFolder(t)
  mkdirSync(path.join(dataDir, 'lock'))
  const { error } = await startInChild(t, dataDir)
  assert.match(error, /lock can't be read \(EISDIR\)/)
})
