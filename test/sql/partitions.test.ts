import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { appendAudit, readAudit } from '../../sql/audit/audit.ts'
import { connect } from '../../sql/connections/driver.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { maintainPartitions } from '../../sql/retention/retention.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { until } from '../until.ts'

/** The audit trail has monthly partitions. Every new event finds one, and old ones are dropped. */

const { url, db, query } = await createTestDatabase()
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'plans' })
after(() => Promise.all([client.end(), reader.close()]))

const maintain = (days = 0) => db.one(maintainPartitions('audit_event', days))
const INSERT_EVENTS = `insert into audit_event (kind, account_id, at) select 'account.updated', n % 100`
/** Reads which months have partitions, as offsets from the current month. */
const readMonths = async (): Promise<unknown[]> =>
  (
    await query(`select (extract(year from m) * 12 + extract(month from m) - extract(year from now() at time zone 'utc') * 12
        - extract(month from now() at time zone 'utc'))::int as n
      from pg_inherits, lateral (select to_date(right(inhrelid::regclass::text, 7), 'YYYY_MM') as m) of_name
      where inhparent = 'audit_event'::regclass and inhrelid::regclass::text !~ 'default' order by 1`)
  ).map(({ n }) => n)
const countRows = async (of: string): Promise<unknown> =>
  (await query(`select count(*)::int as n from ${of}`))[0]!.n

describe('partitions', { concurrency: false }, () => {
  beforeEach(async () => {
    await query('alter table audit_event disable trigger audit_append_only')
    await query('truncate audit_event')
    await query('alter table audit_event enable trigger audit_append_only')
    // On the first day of a month, no retention drops the last one.
    await query(`do $$ declare month text; begin
      for month in select inhrelid::regclass from pg_inherits
        where inhparent = 'audit_event'::regclass and inhrelid::regclass::text !~ 'default'
      loop execute 'drop table ' || month; end loop; end $$`)
    await query(`select partitions_maintain('audit_event', 0)`)
  })

  test('exist for this month and the next two from the start', async () => {
    assert.deepEqual(await readMonths(), [0, 1, 2])
    assert.deepEqual(await maintain(), { made: 0, dropped: 0 })
    await db.run(appendAudit([{ kind: 'account.updated', actorId: null, address: null, requestId: null }]))
    assert.equal(await countRows('partitions.audit_event_default'), 0)
  })

  test('accept any time: rows without a month go to the default partition until it exists', async () => {
    await query(`${INSERT_EVENTS}, now() + (n - 5) * interval '1 month' from generate_series(1, 10) n`)
    assert.equal(await countRows('partitions.audit_event_default'), 7)
    const before = await query('select * from audit_event order by id')
    assert.deepEqual(await maintain(), { made: 7, dropped: 0 })
    assert.equal(await countRows('partitions.audit_event_default'), 0)
    assert.deepEqual(await query('select * from audit_event order by id'), before)
    assert.equal((await readMonths()).length, 10)
  })

  test('are dropped with their rows when their last day is old enough', async () => {
    await query(`${INSERT_EVENTS}, now() - n * interval '31 days' from generate_series(0, 8) n`)
    await maintain()
    const { dropped } = await maintain(90)
    assert.ok(dropped >= 5 && dropped <= 6, String(dropped))
    const [old] = await query(`select count(*) filter (where at < now() - interval '121 days')::int as older,
      count(*) filter (where at > now() - interval '90 days')::int as younger from audit_event`)
    assert.deepEqual(old, { older: 0, younger: 3 })
    assert.deepEqual(await maintain(90), { made: 0, dropped: 0 })
  })

  test('in long use are left to the next call, which blocks no other query', async () => {
    await query(`${INSERT_EVENTS}, now() - n * interval '100 days' from generate_series(1, 3) n`)
    await client.query('begin')
    await client.query('select count(*) from audit_event')
    assert.deepEqual(await maintain(30), { made: 0, dropped: 0 })
    await query(`${INSERT_EVENTS}, now() from generate_series(1, 1) n`)
    await client.query('commit')
    assert.deepEqual(await maintain(30), { made: 3, dropped: 3 })
    assert.equal(await countRows('audit_event'), 1)
  })

  test('are created once by concurrent calls', async () => {
    await query(`${INSERT_EVENTS}, now() - n * interval '1 month' from generate_series(1, 5) n`)
    const all = await Promise.all([maintain(), maintain(), maintain()])
    assert.deepEqual(
      all.reduce((sum, { made }) => sum + made, 0),
      5,
    )
  })

  test('are created by a call that waits for another creation, however long', async () => {
    await query(`${INSERT_EVENTS}, now() - interval '1 month' from generate_series(1, 1) n`)
    await client.query('begin')
    await client.query(`select pg_advisory_xact_lock(hashtextextended('millrace.partitions', 0))`)
    const waiting = maintain()
    await until('the call has waited longer than for a partition', async () => {
      const rows = await query(`select from pg_stat_activity where datname = current_database()
        and wait_event = 'advisory' and query_start < clock_timestamp() - interval '600 ms'`)
      return rows.length > 0
    })
    await client.query('commit')
    assert.deepEqual(await waiting, { made: 1, dropped: 0 })
  })

  test('cost a page of a list a few buffers each, whatever they hold', async () => {
    const years = `now() - n * interval '13 minutes' from generate_series(40000, 1, -1) n`
    await query(`${INSERT_EVENTS}, ${years}`)
    await maintain()
    await vacuumAnalyze(query)
    assert.ok((await readMonths()).length > 12)
    await client.query(`prepare audit as ${readAudit.at.desc.text}`)
    // Lists run with custom plans.
    await client.query('set plan_cache_mode = force_custom_plan')
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
      'explain (analyze, buffers, format json) execute audit(null, null, null, null, null, null, 0, 50)',
    )
    const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': read } = rows[0]!['QUERY PLAN'][0]!.Plan
    // Counting up to 10,000 rows takes about 100 buffers. All events fill 420.
    assert.ok(hit! + read! < 400, `${hit! + read!} buffers`)
    const page = JSON.parse(
      (await reader.text(readAudit.at.desc, [null, null, null, null, null, null, 0, 50]))!,
    )
    const ids = await query('select id::int from audit_event order by id desc limit 50')
    assert.deepEqual(
      page.events.map(({ id }: { id: number }) => id),
      ids.map(({ id }) => id),
    )
  })
})
