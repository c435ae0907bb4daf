import assert from 'node:assert/strict'
import type { Query } from '../../sql/db.ts'
import type { Client } from '../../sql/driver.ts'
import type { ReadStatement, ReadValue } from '../../sql/reader.ts'
import type { WireStatement } from '../../sql/wire.ts'
import type { TestDatabase } from '../database.ts'

/** Finds out whether statements read tables from end to end. */

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly Plans?: readonly Node[]
}

/** The tables that a plan reads from end to end; catalogs follow the schema. */
function scanned(node: Node): string[] {
  const name = node['Relation Name'] ?? ''
  const own = node['Node Type'] === 'Seq Scan' && !name.startsWith('pg_') ? [name] : []
  return [...own, ...(node.Plans ?? []).flatMap(scanned)]
}

const literal = (value: ReadValue): string => {
  if (Array.isArray(value)) return `'{${value.join(',')}}'`
  return value === null ? 'null' : typeof value === 'string' ? `'${value}'` : String(value)
}

/** How the server may plan a named statement: for its values, for any, or as it sees fit after some runs. */
export const PLAN_MODES = ['auto', 'force_custom_plan', 'force_generic_plan'] as const

// Tables of a few rows, which need no index.
const FEW = [
  'worker_lease',
  'blog_post_count',
  'job_count',
  'llm_current',
  'queue_control',
  'schedule_control',
]

const EMPTY_MONTHS = `select relname as name from pg_class where relnamespace = 'partitions'::regnamespace and relkind = 'r'
  and reltuples <= 0`

type Planned = readonly [what: string, WireStatement, ...ReadValue[]]

/** A read with values of its types. */
export const planned = <P extends readonly ReadValue[] = []>(
  what: string,
  statement: ReadStatement<P>,
  ...values: P
): Planned => [what, statement, ...values]

/** Fails when a read finds its rows without an index. */
export async function assertReadByIndex(
  client: Client,
  mode: (typeof PLAN_MODES)[number],
  name: string,
  { text }: WireStatement,
  values: readonly ReadValue[],
): Promise<void> {
  await client.query(`set plan_cache_mode = ${mode}`)
  await client.query(`prepare ${name} as ${text}`)
  const execute = `execute ${name}${values.length === 0 ? '' : `(${values.map(literal).join(', ')})`}`
  // After five runs the server may choose one plan for all values, where it has the choice.
  for (let run = 0; run < (mode === 'auto' ? 6 : 1); run++) await client.query(execute)
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Node }[] }>(`explain (format json) ${execute}`)
  const { rows: months } = await client.query<{ name: string }>(EMPTY_MONTHS)
  const few = [...FEW, ...months.map(({ name }) => name)]
  const tables = scanned(rows[0]!['QUERY PLAN'][0]!.Plan).filter((table) => !few.includes(table))
  assert.deepEqual(tables, [], 'tables read from end to end')
}

/** How many buffers a read takes as lists are planned: for its values. */
export async function buffersOf(
  client: Client,
  { name, text }: WireStatement,
  values: readonly ReadValue[],
): Promise<number> {
  await client.query('set plan_cache_mode = force_custom_plan')
  await client.query(`prepare measured_${name} as ${text}`)
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
    `explain (analyze, buffers, format json) execute measured_${name}(${values.map(literal).join(', ')})`,
  )
  await client.query(`deallocate measured_${name}`)
  const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': read } = rows[0]!['QUERY PLAN'][0]!.Plan
  return hit! + read!
}

/**
 * As `assertReadByIndex` for a write, by what it did: also what its functions, triggers and foreign keys read. Of tables whose names
 * begin alike: those of others may be empty.
 */
export async function assertWriteByIndex(
  client: Client,
  make: () => Promise<Query<unknown>> | Query<unknown>,
  ...tables: readonly string[]
): Promise<void> {
  await client.query('set plan_cache_mode = auto')
  for (let run = 0; run < 7; run++) {
    const { sql, values } = await make()
    await client.query('begin')
    const before = await scans(client, tables)
    await client.query({ text: sql.replaceAll('$slonik_', '$'), values: values as unknown[] })
    const after = await scans(client, tables)
    await client.query('commit')
    assert.deepEqual(after, before, 'counts of scans from end to end')
  }
}

/**
 * Of this session alone, since others add theirs to the tables' counts up to ten seconds late. As `pg_stat_xact_user_tables`,
 * which sums up all indexes for each answer.
 */
async function scans(client: Client, tables: readonly string[]): Promise<Record<string, unknown>[]> {
  const { rows } = await client.query<Record<string, unknown>>({
    name: 'scans',
    text: `select relname, pg_stat_get_xact_numscans(oid) as seq_scan from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all($2)
        and (cardinality($1::text[]) = 0 or exists (select from unnest($1) name where starts_with(relname, name)))
      order by relname`,
    values: [tables, FEW],
  })
  return rows
}

/** 5000 accounts, five in each of 1000 organizations, the first of them its owner. */
export async function fillOrganizations(query: TestDatabase['query']): Promise<void> {
  await query(
    `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 5000) n`,
  )
  await query(
    `insert into organization (name, slug) select repeat('N', 200), 's' || n from generate_series(1, 1000) n`,
  )
  await query(
    `insert into organization_member (organization_id, user_id, role)
     select 1 + (n - 1) / 5, n, case n % 5 when 1 then 'owner' else 'member' end from generate_series(1, 5000) n`,
  )
}

/** A time so many days before now: plans are those of values for which there are rows. */
export const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
