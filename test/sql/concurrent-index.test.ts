import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { connect } from '../../sql/connections/driver.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

/** Migrations build indexes concurrently, while other transactions write. */

const { url, query } = await createTestDatabase()
const folder = mkdtempSync(join(tmpdir(), 'millrace-migrations-'))
const writer = await connect({ url, applicationName: 'writer', statementMs: 30_000 })
after(async () => {
  await writer.end()
  rmSync(folder, { recursive: true, force: true })
})

const runMigrations = (at = url) => migrate(at, { folder: pathToFileURL(`${folder}/`) })
const writeMigration = (name: string, statement: string) =>
  writeFileSync(join(folder, name), `-- not in a transaction\n-- Why.\n${statement};\n`)
const readValidity = async (index: string): Promise<unknown> =>
  (await query('select indisvalid as valid from pg_index where indexrelid = to_regclass($1)', [index]))[0]
    ?.valid
const countRecorded = async (name: string): Promise<number> =>
  (await query('select 1 from migration where name = $1', [name])).length
const insertRow = (slug: string) =>
  writer.query(`insert into organization (name, slug) values ('N', $1)`, [slug])
const readClock = async (): Promise<number> =>
  Number((await query('select extract(epoch from clock_timestamp()) * 1000 as ms'))[0]!.ms)
const waitForBuild = () =>
  until('the index build waits for the transaction', async () => {
    const rows = await query(`select from pg_stat_activity where datname = current_database()
      and query ~ 'index concurrently' and wait_event_type = 'Lock'`)
    return rows.length > 0
  })

describe('a migration without a transaction', { concurrency: false }, () => {
  test('builds its index while others write, and waits for earlier transactions', async () => {
    const name = '000001-name.sql'
    writeMigration(name, 'create index concurrently organization_name_idx on organization (name)')
    const older = await connect({ url, applicationName: 'older' })
    try {
      await older.query('begin')
      await older.query(`insert into organization (name, slug) values ('N', 'older')`)
      const migrated = runMigrations()
      await waitForBuild()
      await insertRow('meanwhile')
      assert.equal(await countRecorded(name), 0)
      await older.query('commit')
      assert.deepEqual(await migrated, [name])
    } finally {
      await older.end()
    }
    assert.equal(await readValidity('organization_name_idx'), true)
    assert.deepEqual(await runMigrations(), [])
  })

  test('is repaired by the next attempt after it failed halfway', async () => {
    const name = '000002-description.sql'
    writeMigration(
      name,
      'create unique index concurrently organization_description_key on organization (description)',
    )
    await query(`update organization set description = 'twice'`)
    await assert.rejects(runMigrations(), (error: Error & { cause?: { code?: string } }) => {
      assert.match(error.message, /Migration 000002-description\.sql could not be applied/)
      assert.equal(error.cause?.code, '23505')
      return true
    })
    assert.deepEqual(
      [await readValidity('organization_description_key'), await countRecorded(name)],
      [false, 0],
    )
    await query(`update organization set description = slug`)
    assert.deepEqual(await runMigrations(), [name])
    assert.equal(await readValidity('organization_description_key'), true)
  })

  test('is repaired after its process was killed during the build', async () => {
    const name = '000003-created.sql'
    writeMigration(name, 'create index concurrently organization_created_at_idx on organization (created_at)')
    await writer.query('begin')
    await insertRow('open')
    const migrated = assert.rejects(runMigrations())
    await waitForBuild()
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'millrace-migrate'`,
    )
    await migrated
    await writer.query('commit')
    assert.equal(await readValidity('organization_created_at_idx'), false)
    assert.deepEqual(await runMigrations(), [name])
    assert.equal(await readValidity('organization_created_at_idx'), true)
  })

  test('may exceed the usual statement limits', async () => {
    const name = '000004-updated.sql'
    writeMigration(name, 'create index concurrently organization_updated_at_idx on organization (updated_at)')
    const limited = new URL(url)
    limited.searchParams.set('options', '-c lock_timeout=200ms -c statement_timeout=200ms')
    await writer.query('begin')
    await insertRow('slow')
    const migrated = runMigrations(limited.href)
    await waitForBuild()
    const before = await readClock()
    await until('more time than the limits has passed', async () => (await readClock()) > before + 250)
    await writer.query('commit')
    assert.deepEqual(await migrated, [name])
  })

  test('is recorded if it was applied without being recorded', async () => {
    await query(`delete from migration where name like '00000_-%.sql'`)
    const before = await query(`select 'organization_name_idx'::regclass::oid as oid`)
    assert.equal((await runMigrations()).length, 4)
    assert.deepEqual(await query(`select 'organization_name_idx'::regclass::oid as oid`), before)
  })

  test('is applied once by concurrent starts, which do not deadlock', async () => {
    writeMigration(
      '000005-slug.sql',
      'create index concurrently organization_slug_idx on organization (slug, name)',
    )
    const applied = await Promise.all([runMigrations(), runMigrations(), runMigrations()])
    assert.deepEqual(applied.flat(), ['000005-slug.sql'])
  })

  test('must consist of one create index statement', async () => {
    for (const statement of [
      'create index organization_x_idx on organization (name)',
      'create index concurrently if not exists organization_x_idx on organization (name)',
      'update organization set name = name',
    ]) {
      writeMigration('000006-x.sql', statement)
      await assert.rejects(runMigrations(), /000006-x\.sql: only "create index concurrently NAME on …"/)
    }
    writeMigration(
      '000006-x.sql',
      'create index concurrently organization_x_idx on organization (name); create index concurrently organization_y_idx on organization (name)',
    )
    await assert.rejects(
      runMigrations(),
      (error: Error & { cause?: { code?: string } }) => error.cause?.code === '25001',
    )
    assert.equal(await readValidity('organization_x_idx'), undefined)
  })
})
