import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { connect } from '../../sql/connections/driver.ts'
import type { SectionHeader } from '../../sql/server/backup/dump.ts'
import { MAGIC, readSections } from '../../sql/server/backup/format.ts'
import { backUp } from '../../tasks/backup/backup.ts'
import { restore, verifyBackup } from '../../tasks/backup/restore.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createEmptyDatabase } from '../database.ts'
import { SECRET, startEdge, startEdgeAndDatabase } from '../edge/harness.ts'
import { createLedger } from '../edge/ledger.ts'
import { startOwnWorker } from '../edge/own-worker.ts'
import { buildTextPdf } from '../pdfs.ts'
import { Client } from '../service.ts'
import { findDifferences } from '../sql/sums-help.ts'

/** Backs up a service while it works, and runs services on the restored data. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-backup-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const pathTo = (name: string): string => join(folder, name)
const storeEnv = (name: string) => ({ BLOB_STORE: `file:${pathTo(name)}` })
const fileOf = (name: string, key: string): string =>
  join(pathTo(name), key.slice(0, 2), key.slice(2, 4), key)
const parseTestSettings = (env: Record<string, string> = {}) =>
  parseSettings({ NODE_ENV: 'test', SECRET_KEY: SECRET, ...env })

const { api, ...source } = await startEdgeAndDatabase({ env: storeEnv('files') })
const ledger = createLedger(source)
const ann = await api.register('ann@example.com')
const sourceUrls = { url: source.url, directUrl: source.url }

const readRows = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
  const client = await connect({ url, applicationName: 'look' })
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Returns a digest of each table's rows in a backup, independent of the table's split into parts. */
async function digestTables(file: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  let hash = createHash('sha256')
  for await (const { header, data } of readSections<SectionHeader>(file)) {
    if (header.kind !== 'table' || header.part === 0) hash = createHash('sha256')
    for await (const chunk of data) hash.update(chunk)
    if (header.kind === 'table') found.set(header.name, hash.copy().digest('hex'))
    else if (header.kind === 'bytes') found.set(`bytes ${header.blob.blob_id}`, hash.digest('hex'))
    else if (header.kind === 'sequences') found.set('sequences', JSON.stringify(header.values))
  }
  return found
}

test('a backup under load is a consistent snapshot on which a service can run', async () => {
  const pdf = await buildTextPdf(2, { line: () => 'restored' })
  const kept = (await api.upload(ann.token, pdf, { name: 'kept.pdf' })).json.id as number
  const extraction = await api.post(`/api/v1/documents/${kept}/extract?background=true`, { token: ann.token })
  await api.upload(ann.token, 'some text', { name: 'text.txt' })
  await api.call('PATCH', `/api/v1/documents/${kept}`, { token: ann.token, json: { note: 'a\tb\\\n"c" é' } })
  await api.call('POST', `/api/v1/documents/${kept}/tags`, { token: ann.token, json: { label: 'kept' } })
  const running = await ledger.add(ann.id)
  await ledger.claim(running)
  await ledger.addFinished(ann.id)

  await source.query(
    `insert into audit_event (kind, at) values ('account.updated', now() - interval '3 months')`,
  )
  await source.query(`select partitions_maintain('audit_event', 0)`)

  let stop = false
  let written = 0
  const writer = async (n: number): Promise<void> => {
    for (let i = 0; !stop; i++) {
      assert.equal((await api.upload(ann.token, `load ${n} ${i}`)).status, 201)
      await ledger.addFinished(ann.id)
      written++
    }
  }
  const load = [writer(1), writer(2)]
  const report = await backUp(parseTestSettings(storeEnv('files')), sourceUrls, pathTo('first'))
  const before = written
  stop = true
  await Promise.all(load)
  assert.ok(before > 0, 'there was load')
  assert.equal(report.missing, 0)
  assert.ok(report.tables > 20 && report.files >= 2)

  const url = await createEmptyDatabase()
  const to = { url, directUrl: url }
  const restored = await restore(parseTestSettings(storeEnv('elsewhere')), to, pathTo('first'))
  assert.deepEqual(
    [restored.rows, restored.tables, restored.files],
    [report.rows, report.tables, report.files],
  )

  // Each file is stored under its digest, and each document in the backup has its bytes.
  const blobs = await readRows(
    url,
    `select encode(sha256, 'hex') as sha256, key, store from blob where sha256 is not null`,
  )
  for (const { sha256, key, store: location } of blobs) {
    assert.equal(location, `file:${pathTo('elsewhere')}`)
    const bytes = readFileSync(fileOf('elsewhere', String(key)))
    assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256)
  }
  const [lost] = await readRows(
    url,
    'select count(*)::int as n from document d where not exists (select from blob b where b.sha256 = d.sha256)',
  )
  assert.equal(lost!.n, 0)
  assert.deepEqual(
    await findDifferences((text) => readRows(url, text)),
    {},
    'kept sums are those of the rows',
  )

  const [late] = await readRows(url, 'select count(*)::int as n from partitions.audit_event_default')
  assert.equal(late!.n, 0, 'each event is in the partition of its month')

  // A backup of the restored data has the same rows, apart from the location of files.
  await backUp(parseTestSettings(storeEnv('elsewhere')), to, pathTo('second'))
  const [first, second] = [await digestTables(pathTo('first')), await digestTables(pathTo('second'))]
  for (const digest of [first, second]) digest.delete('blob')
  // New ids begin far behind those of rows that the backup lacks.
  const sequences: Record<string, number> = JSON.parse(first.get('sequences')!)
  const moved = Object.entries(sequences).map(([name, value]) => [name, value + 100_000])
  first.set('sequences', JSON.stringify(Object.fromEntries(moved)))
  assert.deepEqual(Object.fromEntries(second), Object.fromEntries(first))
  const schema = `select conrelid::regclass::text || ' ' || conname || ' ' || pg_get_constraintdef(oid) as line from pg_constraint
    where connamespace = 'public'::regnamespace union all
    select tgrelid::regclass::text || ' ' || tgname || ' ' || tgenabled::text from pg_trigger where not tgisinternal order by 1`
  assert.deepEqual(await readRows(url, schema), await readRows(source.url, schema))

  // The same account can sign in, and workers finish the jobs that were waiting or running.
  const service = await startEdge(url, { env: storeEnv('elsewhere') })
  await startOwnWorker(url, '', { ...storeEnv('elsewhere'), WORKER_THREADS: '1' })
  const client = new Client(service.port)
  client.token = ann.token
  const end = await (await client.stream(`/api/v1/jobs/${extraction.json.job_id}/events`)).waitForEnd()
  assert.equal(end.at(-1)!.data.status, 'done')
  const page = await service.get(`/api/v1/documents/${kept}/pages/1`, { token: ann.token })
  assert.match(page.json.text, /restored/)
  assert.equal((await service.upload(ann.token, 'a new one')).status, 201, 'ids go on where they were')
  const taken = await (await client.stream(`/api/v1/jobs/${running}/events`)).waitForEnd()
  assert.notEqual(taken.at(-1)!.data.status, 'running')
})

/**
 * Makes one backup with all unusual values, and restores it into the database and into files. The tests below share
 * both, because a restore takes a second of CPU to create all tables.
 */
const restoreUnusualOnce = (() => {
  let made: ReturnType<typeof restoreUnusual> | undefined
  return () => (made ??= restoreUnusual())
})()

async function restoreUnusual() {
  const kept = await source.query('select key from blob where sha256 is not null')
  const lost = (await api.upload(ann.token, 'soon lost')).json.id as number
  const [row] = await source.query('select key from blob b join document d using (sha256) where d.id = $1', [
    lost,
  ])
  rmSync(fileOf('files', String(row!.key)))
  const [begun] = await source.query('insert into blob (store) values ($1) returning key', [
    storeEnv('files').BLOB_STORE,
  ])
  await source.query(`insert into blob (store, upload_id) values ('s3://bucket', 'u1')`)
  await source.query('create table rag_neighbour_3 (file_id bigint, embedding text)')
  await source.query(`insert into rag_neighbour_3 values (1, '[1,0,0]')`)
  await source.query(
    `insert into rag_collection (name, embedding_model, dimensions, has_neighbours) values ('near', 'm', 3, true)`,
  )
  const [large] = await source.query(`insert into blob (byte_size) values (8e7) returning id`)
  await source.query(
    `insert into blob_chunk (blob_id, ordinal, bytes) select $1, n, convert_to(repeat(chr(97 + n % 26), 30000), 'utf8')
     from generate_series(1, 2700) n`,
    [large!.id],
  )
  // The table keeps its size on disk, but only a tenth of its rows must be copied.
  await source.query('delete from blob_chunk where blob_id = $1 and ordinal % 10 > 0', [large!.id])
  const report = await backUp(parseTestSettings(), sourceUrls, pathTo('unusual'))

  const [inDatabase, inFiles] = [await createEmptyDatabase(), await createEmptyDatabase()]
  const intoDatabase = await restore(
    parseTestSettings(),
    { url: inDatabase, directUrl: inDatabase },
    pathTo('unusual'),
  )
  // A file blocks the path of the folder: the first restore fills the tables and then fails to write files.
  writeFileSync(pathTo('no-folder'), '')
  const failure = await restore(
    parseTestSettings(storeEnv('no-folder')),
    { url: inFiles, directUrl: inFiles },
    pathTo('unusual'),
  ).catch((error: unknown) => error)
  // Leave partial files, as a killed restore does.
  for (const { key } of kept) {
    const file = fileOf('apart', String(key))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(`${file}.part`, 'x'.repeat(10_000))
  }
  const intoFiles = await restore(
    parseTestSettings(storeEnv('apart')),
    { url: inFiles, directUrl: inFiles },
    pathTo('unusual'),
  )
  const digest = `select md5(string_agg(ordinal || md5(bytes), '' order by ordinal)) as md5 from blob_chunk where blob_id = ${large!.id}`
  const digests = [await readRows(source.url, digest), await readRows(inDatabase, digest)]

  await source.query('delete from blob where id = $1', [large!.id])
  await source.query('drop table rag_neighbour_3')
  await source.query(`delete from rag_collection where name = 'near'`)
  await source.query(`delete from blob where store = 's3://bucket'`)
  await source.query('delete from blob where key = $1', [begun!.key])
  return { report, inDatabase, intoDatabase, inFiles, intoFiles, kept, begun: begun!.key, failure, digests }
}

test('restores files into the database and reports those that were lost before', async () => {
  const { report, inDatabase, intoDatabase } = await restoreUnusualOnce()
  assert.equal(report.missing, 1)
  assert.deepEqual([intoDatabase.files, intoDatabase.missing], [report.files, 1])
  const stores = await readRows(
    inDatabase,
    `select store, count(*)::int as n from blob where sha256 is not null group by store order by store`,
  )
  assert.deepEqual(
    stores.map(({ n }) => n),
    [1, report.files],
  )
  const [sum] = await readRows(
    inDatabase,
    `select bool_and(b.sha256 = sha256(c.bytes)) as same from blob b join blob_chunk c on c.blob_id = b.id`,
  )
  assert.equal(sum!.same, true)
})

test('replaces partial files of a killed restore', async () => {
  const { intoFiles, kept, report } = await restoreUnusualOnce()
  assert.equal(intoFiles.files, report.files)
  assert.ok(kept.length > 0)
  for (const { key } of kept) assert.ok(!existsSync(`${fileOf('apart', String(key))}.part`))
})

test('a restored copy does not own unfinished uploads of the source', async () => {
  const { begun, inFiles } = await restoreUnusualOnce()
  const restored = await readRows(inFiles, `select store from blob where key = '${begun}'`)
  assert.deepEqual(restored, [{ store: storeEnv('apart').BLOB_STORE }])
})

test('a restored copy does not contain unfinished uploads into a bucket', async () => {
  const { inFiles } = await restoreUnusualOnce()
  assert.deepEqual(await readRows(inFiles, `select id from blob where store = 's3://bucket'`), [])
})

test('without pgvector, its collections are restored for search in memory', async () => {
  const { inDatabase } = await restoreUnusualOnce()
  const near = await readRows(
    inDatabase,
    `select dimensions, has_neighbours from rag_collection where name = 'near'`,
  )
  assert.deepEqual(near, [{ dimensions: 3, has_neighbours: false }])
})

test('reports files in buckets without copying them', async () => {
  await source.query(`insert into blob (sha256, byte_size, store) values (sha256('x'), 5, 's3://bucket')`)
  const report = await backUp(parseTestSettings(), sourceUrls, pathTo('bucket'))
  assert.deepEqual(report.inBuckets, [{ store: 's3://bucket', count: 1, bytes: 5 }])
  await source.query(`delete from blob where store = 's3://bucket'`)
})

test('splits a large table into sections, with each row in one of them', async () => {
  const { digests } = await restoreUnusualOnce()
  let sections = 0
  for await (const { header, data } of readSections<SectionHeader>(pathTo('unusual'))) {
    if (header.kind === 'table' && header.name === 'blob_chunk') sections++
    for await (const _ of data);
  }
  assert.equal(sections, 3)
  assert.deepEqual(digests[1], digests[0])
})

test('replaces the remains of a killed backup, and rejects a concurrent backup', async () => {
  writeFileSync(pathTo('again.part'), 'x'.repeat(10_000_000))
  writeFileSync(pathTo('again.lock'), JSON.stringify({ pid: 2 ** 30, started: 'long ago' }))
  const both = await Promise.allSettled([
    backUp(parseTestSettings(), sourceUrls, pathTo('again')),
    backUp(parseTestSettings(), sourceUrls, pathTo('again')),
  ])
  const refused = both.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
  assert.equal(refused.length, 1, 'either of them is the first')
  assert.match(refused[0]!, /Another backup is already writing .*again \(pid \d+\)/)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('again')),
    ['again'],
  )
  await verifyBackup(pathTo('again'))
})

test('does not overwrite an existing file, and leaves nothing after a failed backup', async () => {
  writeFileSync(pathTo('mine'), 'mine')
  await assert.rejects(backUp(parseTestSettings(), sourceUrls, pathTo('mine')), /already exists/)
  assert.equal(readFileSync(pathTo('mine'), 'utf8'), 'mine')
  const nowhere = { url: source.url, directUrl: `${source.url}_gone` }
  await assert.rejects(backUp(parseTestSettings(), nowhere, pathTo('failed')))
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('failed')),
    [],
  )
})

test('rejects a damaged, truncated, foreign or newer backup before it writes anything', async () => {
  const whole = readFileSync(pathTo('first'))
  const frames = gunzipSync(whole.subarray(MAGIC.length))
  const place = frames.indexOf('ann@example.com')
  const changed = Buffer.from(frames)
  changed[place] = 'b'.charCodeAt(0)
  const unreadable = Buffer.from(frames)
  unreadable[frames.indexOf('{')] = 'x'.charCodeAt(0)
  const newer = Buffer.from(frames.toString('latin1').replace('000000-baseline', '999999-accounts'), 'latin1')
  const gzipBackup = (bytes: Buffer) => Buffer.concat([Buffer.from(MAGIC), gzipSync(bytes)])
  const url = await createEmptyDatabase()
  for (const [name, bytes, reason] of [
    ['changed', gzipBackup(changed), /damaged/],
    ['unreadable', gzipBackup(unreadable), /damaged/],
    ['cut', whole.subarray(0, whole.length - 20), /damaged/],
    ['without end', gzipBackup(frames.subarray(0, frames.length - 20)), /damaged/],
    ['not one', Buffer.from('PK something else'), /not a backup/],
    ['empty', Buffer.alloc(0), /not a backup/],
    ['newer', gzipBackup(newer), /newer version; unknown migrations: 999999-accounts/],
  ] as const) {
    writeFileSync(pathTo(name), bytes)
    await assert.rejects(restore(parseTestSettings(), { url, directUrl: url }, pathTo(name)), reason, name)
  }
  const tables = `select count(*)::int as n from pg_class where relnamespace = 'public'::regnamespace`
  assert.deepEqual(await readRows(url, tables), [{ n: 0 }])
})

test('rejects a database with contents, and empties a database after a failed restore', async () => {
  await assert.rejects(restore(parseTestSettings(), sourceUrls, pathTo('first')), /not empty/)
  const { failure, intoFiles, report } = await restoreUnusualOnce()
  assert.ok(failure instanceof Error, 'the first restore fails')
  assert.equal(intoFiles.tables, report.tables, 'the next one finds the database empty')
})
