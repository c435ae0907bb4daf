import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { createTestDatabase } from '../database.ts'

/** The schema works with PostgreSQL's own means of copying a database: dumps and logical replication. */

const { url, query } = await createTestDatabase()
const client = await connect({ url, applicationName: 'test-replication' })
after(() => client.end())

/** A call of each function that generated columns, indexes and constraints use. */
const CALLS: Readonly<Record<string, string>> = {
  blog_post_fields: `public.blog_post_fields(1, 'a', 'a', null, 'a', 'draft', 1, 'Ann', now(), null, null, null, null, null)`,
  document_json: `public.document_json(1, 'a', 'other', 'text/plain', 1, '\\x00', 1, null, now(), null, null, null, false, null, '{}', now(), null, null, null)`,
  document_vector: `public.document_vector('Café ΑΣ 日本 INV-40718', 'ا note', '{tag}', current_date)`,
  folded: `public.folded('Café')`,
  owned_vector: `public.owned_vector(1, public.document_vector('a', null, '{}', null))`,
  payment_refunded: `public.payment_refunded('{}', 1, 0)`,
  payment_status: `public.payment_status(false, '{}', 0)`,
}

test('functions that a restored dump and a subscriber call need no search path', async () => {
  const used = await query(`
    select distinct p.proname as name from pg_depend d
    join pg_proc p on d.refobjid = p.oid and d.refclassid = 'pg_proc'::regclass
    where d.classid in ('pg_attrdef'::regclass, 'pg_class'::regclass, 'pg_constraint'::regclass)
      and p.pronamespace = 'public'::regnamespace and p.prolang <> (select oid from pg_language where lanname = 'c')
    order by 1`)
  assert.deepEqual(
    used.map(({ name }) => name),
    Object.keys(CALLS),
  )
  await client.query(`set search_path = ''`)
  for (const call of Object.values(CALLS)) await client.query(`select ${call}`)
})

test('a publication refuses no update of a table', async () => {
  const refusing = await query(`
    select relname from pg_class c where relkind in ('r', 'p') and relpersistence = 'p' and relreplident = 'd'
      and relnamespace in ('public'::regnamespace, 'graphile_worker'::regnamespace)
      and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`)
  assert.deepEqual(refusing, [])
})
