import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { dumpSchema } from '../../sql/server/dump.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { listMigrationNames } from '../../sql/server/migrations.ts'
import { until } from '../until.ts'
import { withClient } from './ledger-help.ts'

const base = process.env.TEST_DATABASE_URL
if (base === undefined) throw new Error('No test database: run the file through `npm test -- FILE`')
const admin = await connect({ url: base, applicationName: 'migrate-test' })
const createdDatabases: string[] = []
after(async () => {
  for (const name of createdDatabases) await admin.query(`drop database ${name} with (force)`)
  await admin.end()
})

/** Creates a database as a copy of `template`; returns its URL. */
async function createDatabaseFrom(template = 'template0'): Promise<string> {
  const name = `migrate_${process.pid}_${createdDatabases.length}`
  await admin.query(`create database ${name} template ${template} strategy file_copy`)
  createdDatabases.push(name)
  return base!.replace(/\/postgres($|\?)/, `/${name}$1`)
}

const createEmpty = () => createDatabaseFrom()
/** Creates a database from the run's template, which is migrated; returns its URL. */
const createMigrated = () => createDatabaseFrom(process.env.TEST_TEMPLATE)

const readRows = (url: string, text: string) =>
  withClient(url, async (client) => (await client.query<Record<string, unknown>>(text)).rows)
const names = await listMigrationNames()

/** Asserts that all connections to the database close. A backend ends a moment after its connection. */
async function assertNoConnection(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await until('all connections are closed', async () => {
    const { rows } = await admin.query('select from pg_stat_activity where datname = $1', [name])
    return rows.length === 0
  })
}

describe('migrate', () => {
  test('one of several concurrent runs creates the schema, in the order of the numbers', async () => {
    const url = await createEmpty()
    const applied = await Promise.all([migrate(url), migrate(url), migrate(url)])
    assert.deepEqual(
      applied.filter((one) => one.length > 0),
      [names],
    )
    const recorded = await readRows(url, 'select name from migration order by applied_at, name')
    assert.deepEqual(
      recorded.map((row) => row.name),
      names,
    )
    const [queue] = await readRows(
      url,
      `select to_regclass('graphile_worker._private_jobs') is not null as there`,
    )
    assert.equal(queue!.there, true)
    await assertNoConnection(url)
  })

  test('a second run changes nothing', async () => {
    const url = await createMigrated()
    const before = [await dumpSchema(url), await readRows(url, 'select * from migration order by name')]
    assert.deepEqual(await migrate(url), [])
    assert.deepEqual(
      [await dumpSchema(url), await readRows(url, 'select * from migration order by name')],
      before,
    )
  })

  test('a failed migration is named, and leaves nothing behind', async () => {
    const url = await createEmpty()
    await readRows(url, 'create table job_event (nothing integer)')
    await assert.rejects(migrate(url), (error: Error & { cause?: { code?: string } }) => {
      assert.match(error.message, /Migration 000000-baseline could not be applied/)
      assert.equal(error.cause?.code, '42P07')
      return true
    })
    assert.deepEqual(await readRows(url, 'select name from migration'), [])
    const [left] = await readRows(
      url,
      `select to_regclass('job') as job, to_regclass('worker_lease') as lease, to_regclass('account') as account`,
    )
    assert.deepEqual(left, { job: null, lease: null, account: null })
    await readRows(url, 'drop table job_event')
    assert.deepEqual(await migrate(url), names)
  })

  test('a partly applied migration resumes where it stopped', async () => {
    const url = await createMigrated()
    // This migration fails if it is applied twice.
    const seeds = names[1]!
    await readRows(url, `delete from migration where name = '${seeds}'`)
    await assert.rejects(migrate(url), new RegExp(seeds))
    assert.equal((await readRows(url, 'select name from migration')).length, names.length - 1)
  })

  test("the queue's tables are migrated even if nothing else is new", async () => {
    const url = await createMigrated()
    await readRows(url, 'drop schema graphile_worker cascade')
    assert.deepEqual(await migrate(url), [])
    await readRows(url, 'select from graphile_worker.jobs')
  })

  // A breaking migration of the queue's tables would stop workers of the previous version.
  test("the queue's tables have no breaking migration after 1.0.0", async () => {
    const url = await createMigrated()
    const [last] = await readRows(url, 'select max(id) as id from graphile_worker.migrations where breaking')
    const hint = 'such a release needs all workers stopped: say so in CHANGELOG.md, and its number here'
    assert.equal(last!.id, 19, hint)
  })

  test('changed functions are applied again, with their whole area', async () => {
    const url = await createMigrated()
    const before = await dumpSchema(url)
    await readRows(
      url,
      `create or replace function job_fence(job_id uuid, of_attempt integer) returns boolean language sql as 'select false';
       alter function job_deliver reset all; drop trigger job_delete_traces on job;
       update migration_functions set digest = 'of before' where area = 'jobs'`,
    )
    assert.deepEqual(await migrate(url), ['functions/jobs'])
    assert.equal(await dumpSchema(url), before)
    assert.deepEqual(await migrate(url), [])
  })

  test('an error in functions names their area', async () => {
    const url = await createMigrated()
    await readRows(
      url,
      `drop function idempotency_claim; update migration_functions set digest = 'of before' where area = 'idempotency';
       create function idempotency_claim(scope text, key text, fingerprint bytea) returns text language sql as 'select 1'`,
    )
    await assert.rejects(migrate(url), /The functions of idempotency could not be applied/)
  })

  test('a database older than the baseline is rejected unchanged', async () => {
    const url = await createEmpty()
    await readRows(
      url,
      `create table migration (name text primary key); insert into migration values ('000001-accounts.sql')`,
    )
    await assert.rejects(
      migrate(url),
      /before 1\.0\.0 created this database, which can't be migrated: start with an empty one/,
    )
    assert.deepEqual(await readRows(url, 'select name from migration'), [{ name: '000001-accounts.sql' }])
  })

  test('a failure leaves no connection open', async () => {
    const url = await createMigrated()
    await readRows(url, `delete from migration`)
    await assert.rejects(migrate(url))
    await assertNoConnection(url)
  })
})
