import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { PARTITIONED_TABLES, PRUNED_TABLES } from '../../sql/retention/retention.ts'
import { RETAINED_TABLES, readTables, storeTableSizes } from '../../sql/system/sizes.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertReadByIndex, assertWriteByIndex } from './plans-help.ts'

/** Sizes of tables, their growth, and the rows that retention would free. */

const { url, db, query } = await createTestDatabase()
const reader = createReader({ url, applicationName: 'sizes' })
const client = await connect({ url, applicationName: 'plans' })
after(() => Promise.all([reader.close(), client.end()]))

const ROWS = 2000
const ROW_TIME = `now() - n * interval '150 minutes'`
// SQL expression that spreads the rows of `AGO` over four times as many days.
const OLD_ROW_TIME = `now() - n * interval '10 hours'`
await query(`insert into comms_send (id, channel, job_id, recipients, status, requested_at, settled_at, created_at)
  select gen_random_uuid(), 'email', gen_random_uuid(), '{x}', 'sent', ${OLD_ROW_TIME}, ${OLD_ROW_TIME}, ${OLD_ROW_TIME} from generate_series(1, ${ROWS}) n`)
await query(`insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, estimated, success, created_at)
  select 'u', 'chat', 'v', 'm', 1, 1, false, true, ${OLD_ROW_TIME} from generate_series(1, ${ROWS}) n`)
await query(`insert into payment_event (id, type, created_at, received_at, applied_at, data)
  select n, 'x', now(), ${OLD_ROW_TIME}, case when n % 2 = 0 then now() end, case when n % 2 = 1 then '{}'::jsonb end from generate_series(1, ${ROWS}) n`)
await query(`insert into account (email, password_hash) values ('a@example.com', 'x')`)
await query(
  `insert into webhook_endpoint (secret, account_id, url, host, events) select 'aaaaaaaa.AAAA', id, 'https://example.com/', 'example.com', '{job.done}' from account`,
)
await query(`insert into webhook_delivery (endpoint_id, type, body, created_at)
  select id, 't', '{}', ${OLD_ROW_TIME} from webhook_endpoint, generate_series(1, ${ROWS}) n`)
await query(`insert into account_export (id, account_id, sha256, byte_size, created_at)
  select gen_random_uuid(), id, sha256(n::text::bytea), 1, ${ROW_TIME} from account, generate_series(1, ${ROWS}) n`)
await query(`insert into document (title, media_type, byte_size, sha256, deleted_at, expires_at, pruned_at)
  select 't', 't', 1, sha256(n::text::bytea), ${ROW_TIME}, ${ROW_TIME}, now() from generate_series(1, ${ROWS}) n`)
await query(`insert into organization (name, slug) select 'N', 'n' || n from generate_series(1, 2000) n`)
await query(`insert into organization_invite (organization_id, email, role, status, expires_at)
  select id, 'i' || n || '@example.com', 'member', 'revoked', ${ROW_TIME} from organization, generate_series(1, ${ROWS}) n where slug = 'n1'`)
await query(`insert into voice_preview (digest, provider, model, voice, speed, text, used_at)
  select sha256(n::text::bytea), 'p', 'm', 'v', 1, 't', ${ROW_TIME} from generate_series(1, 800) n`)
await query(`insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
  select digest, gen_random_uuid(), n, 0, 'x' from voice_preview, generate_series(0, 4) n`)
await query(
  `insert into audit_event (kind, at) select 'account.updated', ${ROW_TIME} from generate_series(1, ${ROWS}) n`,
)
await query(`select partitions_maintain('audit_event', 0)`)
// The measurement reads only the oldest row of these tables.
for (const rows of [
  `account (email, password_hash) select 'a' || n || '@example.com', 'x'`,
  `blob (sha256) select sha256(n::text::bytea)`,
  `blog_post (title, slug) select 't', 'p' || n`,
  `payment_customer (provider_customer_id) select 'cus_' || n`,
  `rag_collection (name) select 'c' || n`,
  `rag_file (collection_id, source, sha256, byte_size, format, analysis, chunk_count, dictionary)
   select (select min(id) from rag_collection), n, sha256(n::text::bytea), 1, 'f', 1, 0, 'english_stem'`,
])
  await query(`insert into ${rows} from generate_series(1, 2000) n`)
await query(`insert into table_size (day, name, rows, bytes)
  select (now() at time zone 'utc')::date - n, name, 100 * n, 8192 * n from generate_series(1, 400) n,
    unnest(array['comms_send', 'ai_usage', 'gone'] || array(select 'other ' || n from generate_series(1, 40) n)) name where n <> 7`)
await vacuumAnalyze(query)

interface Table {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly growth: Record<'day' | 'week' | 'month', { rows: number; bytes: number } | null>
  readonly bytes_by_day: readonly (number | null)[]
  readonly oldest_day: string | null
  readonly retention: {
    setting: string
    days: number | null
    rows: number | null
    bytes: number | null
  } | null
}
const createRetentionValues = (days: number | Readonly<Record<string, number>>) => {
  const named = RETAINED_TABLES.map(({ table }) => table)
  const each = named.map((table) => (typeof days === 'number' ? days : (days[table] ?? 0)))
  return [named, named.map((table) => table.toUpperCase()), each] as const
}
const read = async (days: number | Readonly<Record<string, number>> = 90) => {
  const answer = JSON.parse((await reader.text(readTables, createRetentionValues(days)))!)
  return { ...answer, of: new Map<string, Table>(answer.tables.map((table: Table) => [table.name, table])) }
}
const readDayBefore = async (ago: string): Promise<unknown> =>
  (await query(`select ((now() - interval '${ago}') at time zone 'utc')::date::text as day`))[0]!.day

describe('tables', { concurrency: false }, () => {
  test('lists our tables, with the queue as one and partitions as one, largest first', async () => {
    const { tables, bytes } = await read()
    const names = tables.map(({ name }: Table) => name)
    const ours =
      await query(`select relname::text as name from pg_class c where relnamespace = 'public'::regnamespace
      and relkind in ('r', 'p') and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')`)
    assert.deepEqual([...names].sort(), [...ours.map(({ name }) => name), 'graphile_worker'].sort())
    const sizes = tables.map((table: Table) => table.bytes)
    assert.deepEqual(
      sizes,
      sizes.toSorted((a: number, b: number) => b - a),
    )
    assert.equal(
      bytes,
      sizes.reduce((sum: number, one: number) => sum + one, 0),
    )
  })

  test("returns rows and bytes by the server's statistics, without counting", async () => {
    const { of } = await read()
    const [{ bytes }] = (await query(`select pg_total_relation_size('comms_send')::int as bytes`)) as [
      { bytes: number },
    ]
    assert.deepEqual([of.get('comms_send')!.rows, of.get('comms_send')!.bytes], [ROWS, bytes])
    assert.equal(of.get('audit_event')!.rows, ROWS)
    const [parts] = await query(`select sum(pg_total_relation_size(inhrelid))::int as bytes from pg_inherits
      where inhparent = 'audit_event'::regclass`)
    assert.equal(of.get('audit_event')!.bytes, parts!.bytes)
    assert.equal(of.get('job')!.rows, 0)
  })

  test('returns the growth since the days of measurement', async () => {
    const { of } = await read()
    const { rows, bytes, growth, bytes_by_day } = of.get('comms_send')!
    assert.deepEqual(growth, {
      day: { rows: rows - 100, bytes: bytes - 8192 },
      week: null,
      month: { rows: rows - 3000, bytes: bytes - 30 * 8192 },
    })
    const past = Array.from({ length: 30 }, (_, i) => (i === 23 ? null : (30 - i) * 8192))
    assert.deepEqual(bytes_by_day, [...past, bytes])
    assert.deepEqual(of.get('job')!.growth, { day: null, week: null, month: null })
  })

  test('returns the oldest day if an index knows it', async () => {
    const { of } = await read()
    for (const name of ['comms_send', 'ai_usage', 'payment_event'])
      assert.equal(of.get(name)!.oldest_day, await readDayBefore('20000 hours'))
    assert.equal(of.get('voice_preview')!.oldest_day, await readDayBefore('2000 hours'))
    assert.deepEqual(
      ['job', 'document_page'].map((name) => of.get(name)!.oldest_day),
      [null, null],
    )
  })

  test('returns the rows that retention would free: few are counted, many estimated', async () => {
    const limit = { comms_send: 830, ai_usage: 90, payment_event: 800, voice_preview: 80 }
    const { of } = await read({ ...limit, voice_preview_chunk: 80 })
    const readRetention = (name: string) => of.get(name)!.retention!
    // Rows are ten hours apart, so rows 1992 to 2000 are older than 830 days.
    assert.equal(readRetention('comms_send').rows, 9)
    const { bytes, rows } = of.get('comms_send')!
    assert.equal(readRetention('comms_send').bytes, Math.round((bytes * 9) / rows))
    // Events that are not applied yet do not count.
    assert.equal(readRetention('payment_event').rows, 41)
    assert.ok(Math.abs(readRetention('ai_usage').rows! - 1785) < 50, `${readRetention('ai_usage').rows}`)
    assert.deepEqual(
      [readRetention('voice_preview').rows, readRetention('voice_preview_chunk').rows],
      [33, 165],
    )
    assert.deepEqual(
      [readRetention('comms_send').setting, readRetention('comms_send').days],
      ['COMMS_SEND', 830],
    )
    assert.deepEqual(readRetention('document'), { setting: 'DOCUMENT', days: null, rows: null, bytes: null })
    assert.equal(of.get('blog_post')!.retention, null)
  })

  test('frees whole months of partitioned tables', async () => {
    const of = (await read({ audit_event: 60 })).of
    const [gone] =
      await query(`select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::int as bytes from pg_inherits
      where inhparent = 'audit_event'::regclass and inhrelid::regclass::text ~ '\\d$'
        and to_date(right(inhrelid::regclass::text, 7), 'YYYY_MM') + interval '1 month' <= now() - interval '60 days'`)
    const freed = of.get('audit_event')!.retention!
    assert.ok(Number(gone!.bytes) > 0)
    assert.equal(freed.bytes, gone!.bytes)
    assert.ok(freed.rows! > 800 && freed.rows! < 1440, `${freed.rows}`)
  })

  test('frees as many rows as reported', async () => {
    const { of } = await read({ payment_event: 800, organization_invite: 200, document: 200 })
    for (const { table, prune: sweep } of PRUNED_TABLES)
      if (['payment_event', 'organization_invite', 'document'].includes(table))
        assert.equal(
          (await db.one(sweep(table === 'payment_event' ? 800 : 200, 100_000))).deleted,
          of.get(table)!.retention!.rows,
        )
  })

  test('is measured daily, with the last time of a day, and kept for 400 days', async () => {
    const today = `day = (now() at time zone 'utc')::date`
    const { count } = await db.one(storeTableSizes())
    assert.equal((await read()).tables.length, count)
    await query(`update table_size set rows = 0, bytes = 0 where ${today}`)
    await query(
      `insert into table_size (day, name, rows, bytes) values ((now() at time zone 'utc')::date - 401, 'job', 1, 1)`,
    )
    await db.one(storeTableSizes())
    const [kept] =
      await query(`select (select rows from table_size where ${today} and name = 'comms_send') as rows,
      (select count(*) from table_size where ${today})::int as tables, (now() at time zone 'utc')::date - min(day) as days from table_size`)
    assert.deepEqual(kept, { rows: String(ROWS), tables: count, days: 400 })
    await assert.rejects(query(`insert into table_size select * from table_size limit 1`), {
      constraint: 'table_size_pkey',
    })
  })
})

describe('reads by index', async () => {
  test('sizes of tables', () => assertReadByIndex(client, readTables, createRetentionValues(830)))
  test('including functions and the measurement', async () => {
    const asked = { sql: readTables.text, values: createRetentionValues(90) } as never
    await assertWriteByIndex(
      client,
      () => asked,
      ...[...PRUNED_TABLES, ...PARTITIONED_TABLES].map(({ table }) => table),
    )
    await assertWriteByIndex(client, storeTableSizes, 'table_size')
  })
})
