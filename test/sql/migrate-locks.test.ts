import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Client, connect } from '../../sql/connections/driver.ts'
import { LOCK_TIMING, type LockTiming } from '../../sql/server/lock-retry.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

/** Migrations change tables that a long transaction uses. */

const { url, query } = await createTestDatabase()
const folder = mkdtempSync(join(tmpdir(), 'millrace-migrations-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const writeMigration = (name: string, statement: string) =>
  writeFileSync(join(folder, name), `${statement};\n`)

interface MigrationRun {
  readonly applied: Promise<readonly string[]>
  readonly log: readonly string[]
  readonly isOver: () => boolean
}

function startMigration(wait: Partial<LockTiming> = {}): MigrationRun {
  const log: string[] = []
  let over = false
  const applied = migrate(url, {
    folder: pathToFileURL(`${folder}/`),
    wait: { ...LOCK_TIMING, ...wait },
    log: (line) => log.push(line),
  }).finally(() => {
    over = true
  })
  applied.catch(() => {})
  return { applied, log, isOver: () => over }
}

/** Runs `work` while another transaction, which has read the table, stays open. */
async function withOpenRead(table: string, work: (older: Client) => Promise<void>): Promise<void> {
  const older = await connect({ url, applicationName: 'a long report' })
  try {
    await older.query(`begin; select from ${table} limit 1`)
    await work(older)
  } finally {
    await older.end()
  }
}

const waitForLock = () =>
  until('the migration waits for a lock', async () => {
    const rows = await query(`select from pg_stat_activity where datname = current_database()
      and application_name = 'millrace-migrate' and wait_event_type = 'Lock'`)
    return rows.length > 0
  })
const countColumns = async (name: string): Promise<number> =>
  (await query(`select from pg_attribute where attrelid = 'organization'::regclass and attname = $1`, [name]))
    .length

describe('a migration that waits for a lock', { concurrency: false }, () => {
  test('blocks others only briefly, then retries', async () => {
    writeMigration('000001-first.sql', 'alter table organization add column first text')
    await withOpenRead('organization', async (older) => {
      const { applied, log, isOver } = startMigration({ waitMs: 300, pauseMs: 50 })
      await waitForLock()
      // This read waits behind the migration, which waits for the open transaction.
      await query('select from organization limit 1')
      assert.equal(isOver(), false)
      await until('two retries are logged', () => log.length >= 2)
      assert.match(
        log[1]!,
        /^Migration 000001-first\.sql could not get a lock, next attempt in 0\.05 s: a transaction of a long report \(process \d+\) has been open for \d+ s$/,
      )
      await older.query('commit')
      assert.deepEqual(await applied, ['000001-first.sql'])
    })
    assert.equal(await countColumns('first'), 1)
  })

  test('gives up after its deadline with a clear message, and leaves nothing behind', async () => {
    writeMigration(
      '000002-second.sql',
      'alter table account add column second text; alter table organization add column second text',
    )
    await withOpenRead('organization', async () => {
      const { applied } = startMigration({ waitMs: 20, pauseMs: 20, limitMs: 200 })
      await assert.rejects(applied, (error: Error) => {
        assert.match(
          error.message,
          /^Migration 000002-second\.sql could not get a lock within 0\.2 s: a transaction of a long report \(process \d+\) has been open for \d+ s\. End the blocking transaction, then rerun this; nothing of it has been applied$/,
        )
        assert.equal(error.cause, undefined)
        return true
      })
    })
    assert.deepEqual(await query(`select from migration where name = '000002-second.sql'`), [])
    assert.equal(await countColumns('second'), 0)
    assert.deepEqual(await startMigration().applied, ['000002-second.sql'])
  })

  test('behaves the same when functions with triggers are applied', async () => {
    await query(`update migration_functions set digest = 'of before' where area = 'orgs'`)
    const older = await connect({ url, applicationName: 'a long report' })
    try {
      await older.query('begin; lock table organization_member in row exclusive mode')
      const { applied, log } = startMigration({ waitMs: 20, pauseMs: 20 })
      await until('a retry is logged', () => log.length > 0)
      assert.match(log[0]!, /^The functions of orgs could not get a lock/)
      await older.query('commit')
      assert.deepEqual(await applied, ['functions/orgs'])
    } finally {
      await older.end()
    }
  })

  test('waits less than a read may take, and longer than PostgreSQL needs to cancel an autovacuum', async () => {
    const [row] = await query(
      `select extract(epoch from reset_val::int * interval '1 ms') * 1000 as ms from pg_settings where name = 'deadlock_timeout'`,
    )
    const { readTimeoutMs } = parseSettings({ NODE_ENV: 'test', SECRET_KEY: 'x'.repeat(32) })
    assert.ok(LOCK_TIMING.waitMs > Number(row!.ms))
    assert.ok(LOCK_TIMING.waitMs < readTimeoutMs * 0.9)
  })
})
