import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { connect } from '../../sql/driver.ts'
import { dumpSchema } from '../../sql/dump.ts'
import { migrate } from '../../sql/migrate.ts'
import { migrationNames } from '../../sql/migrations.ts'
import { until } from '../until.ts'
import { withClient } from './ledger-help.ts'

const base = process.env.TEST_DATABASE_URL
if (base === undefined) throw new Error('No test database: run the file through `npm test -- FILE`')
const admin = await connect({ url: base, applicationName: 'migrate-test' })
const made: string[] = []
after(async () => {
  for (const name of made) await admin.query(`drop database ${name} with (force)`)
  await admin.end()
})

/** The URL of an empty database. */
async function empty(): Promise<string> {
  const name = `migrate_${process.pid}_${made.length}`
  await admin.query(`create database ${name}`)
  made.push(name)
  return base!.replace(/\/postgres($|\?)/, `/${name}$1`)
}

const rowsOf = (url: string, text: string) =>
  withClient(url, async (client) => (await client.query<Record<string, unknown>>(text)).rows)
const names = await migrationNames()

describe('migrate', () => {
  test('brings an empty database to the schema, in the order of the numbers', async () => {
    const url = await empty()
    assert.deepEqual(await migrate(url), names)
    const recorded = await rowsOf(url, 'select name from migration order by applied_at, name')
    assert.deepEqual(
      recorded.map((row) => row.name),
      names,
    )
    const [queue] = await rowsOf(
      url,
      `select to_regclass('graphile_worker._private_jobs') is not null as there`,
    )
    assert.equal(queue!.there, true)
  })

  test('done twice, it changes nothing', async () => {
    const url = await empty()
    await migrate(url)
    const before = [await dumpSchema(url), await rowsOf(url, 'select * from migration order by name')]
    assert.deepEqual(await migrate(url), [])
    assert.deepEqual(
      [await dumpSchema(url), await rowsOf(url, 'select * from migration order by name')],
      before,
    )
  })

  test('of several at once one does the work', async () => {
    const url = await empty()
    const applied = await Promise.all([migrate(url), migrate(url), migrate(url)])
    assert.deepEqual(
      applied.filter((one) => one.length > 0),
      [names],
    )
  })

  test('one that fails says which, leaves nothing of itself, and keeps what came before', async () => {
    const url = await empty()
    await rowsOf(url, 'create table job_event (nothing integer)')
    await assert.rejects(migrate(url), (error: Error & { cause?: { code?: string } }) => {
      assert.match(error.message, /000002-jobs\.sql/)
      assert.equal(error.cause?.code, '42P07')
      return true
    })
    assert.deepEqual(await rowsOf(url, 'select name from migration'), [{ name: names[0] }])
    const [left] = await rowsOf(
      url,
      `select to_regclass('job') as job, to_regclass('worker_lease') as lease, to_regclass('account') as account`,
    )
    assert.deepEqual(left, { job: null, lease: null, account: 'account' })
    await rowsOf(url, 'drop table job_event')
    assert.deepEqual(await migrate(url), names.slice(1))
  })

  test('one that is applied in part goes on where it stopped', async () => {
    const url = await empty()
    await migrate(url)
    // One that can't be applied twice.
    const first = names[0]!
    await rowsOf(url, `delete from migration where name = '${first}'`)
    await assert.rejects(migrate(url), new RegExp(first.replace('.', '\\.')))
    assert.equal((await rowsOf(url, 'select name from migration')).length, names.length - 1)
  })

  test('the events of jobs are the same after it as before (000022)', async () => {
    const url = await empty()
    await migrate(url, '000021-held-snapshots.sql')
    const lease = randomUUID()
    await rowsOf(
      url,
      `insert into worker_lease (id, name, queues, expires_at) values ('${lease}', 'w', '{q}', 'infinity')`,
    )
    const id: Record<string, string> = {}
    const call = (name: string, more: Record<string, unknown>) =>
      rowsOf(url, `select * from ${name}('${JSON.stringify([more])}'${name === 'job_finish' ? ', 5' : ''})`)
    for (const name of ['waits', 'cancelled', 'runs', 'done', 'failed', 'retried']) {
      id[name] = randomUUID()
      await call('job_enqueue', {
        id: id[name],
        name: 'n',
        queue: 'q',
        payload: {},
        max_tries: 3,
        priority: 0,
      })
    }
    const claim = (name: string, delivery: number) =>
      rowsOf(url, `select * from job_claim('${lease}', '{${id[name]}}', '{${delivery}}')`)
    const said = (name: string, attempt: number, label: string) =>
      call('job_progress', {
        id: id[name],
        attempt,
        n: 1,
        kind: 'status',
        data: { label, current: 1, total: 2 },
      })
    const end = (name: string, attempt: number, outcome: string) =>
      call('job_finish', { id: id[name], attempt, outcome, result: { name } })
    await rowsOf(url, `select job_cancel('${id.cancelled}')`)
    for (const name of ['runs', 'done', 'failed', 'retried']) {
      assert.equal((await claim(name, 1)).length, 1)
      await said(name, 1, `of ${name}`)
    }
    await end('done', 1, 'done')
    await end('failed', 1, 'failed')
    await end('retried', 1, 'retry')
    await claim('retried', 2)
    await end('retried', 2, 'done')
    const events = () => rowsOf(url, 'select job_id, seq, kind, data from job_event order by job_id, seq')
    const before = await events()
    assert.equal(before.length, 1 + 2 + 3 + 3 + 5)
    await migrate(url)
    assert.deepEqual(await events(), before)
    assert.deepEqual(await rowsOf(url, 'select count(*)::int as stored from job_event_row'), [{ stored: 6 }])
  })

  test('no connection is left behind, whatever came of it', async () => {
    const url = await empty()
    await migrate(url)
    await rowsOf(url, `delete from migration`)
    await assert.rejects(migrate(url))
    const name = new URL(url).pathname.slice(1)
    // Its backend goes a moment after the connection.
    await until('none is left', async () => {
      const { rows } = await admin.query('select from pg_stat_activity where datname = $1', [name])
      return rows.length === 0
    })
  })
})
