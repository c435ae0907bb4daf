import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../sql/connections/driver.ts'
import type { WireStatement } from '../../sql/connections/wire.ts'
import type { Query } from '../../sql/db.ts'
import type { ReadStatement, ReadValue } from '../../sql/reads/reader.ts'
import type { TestDatabase } from '../database.ts'

/** Helpers that fail if a statement scans a whole table. */

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly Plans?: readonly PlanNode[]
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
}

/** Returns the tables that a plan scans sequentially. Ignores catalogs, whose size depends only on the schema. */
function findScannedTables(node: PlanNode): string[] {
  const name = node['Relation Name'] ?? ''
  const own = node['Node Type'] === 'Seq Scan' && !name.startsWith('pg_') ? [name] : []
  return [...own, ...(node.Plans ?? []).flatMap(findScannedTables)]
}

const toLiteral = (value: ReadValue): string => {
  if (Array.isArray(value)) return `'{${value.join(',')}}'`
  return value === null ? 'null' : typeof value === 'string' ? `'${value}'` : String(value)
}

/** Modes that force a custom or a generic plan. */
export const FORCED_MODES = ['force_custom_plan', 'force_generic_plan'] as const

/**
 * Mode in which the server plans a prepared statement. `auto` chooses a custom or a generic plan, so testing both
 * forced modes covers it.
 */
export type PlanMode = (typeof FORCED_MODES)[number] | 'auto'

/** Start options that plan each statement once. Planning a list for its values costs more than executing it. */
export const GENERIC_PLANS = '-c plan_cache_mode=force_generic_plan'

// Small tables that need no index.
const SMALL_TABLES = [
  'worker_lease',
  'blog_post_count',
  'job_count',
  'llm_current',
  'payment_ignored_event',
  'payment_key',
  'queue_control',
]

const EMPTY_PARTITIONS = `select relname as name from pg_class where relnamespace = 'partitions'::regnamespace and relkind = 'r'
  and reltuples <= 0`

type PlannedRead = readonly [what: string, WireStatement, ...ReadValue[]]

/** Returns a read with values that match its parameter types. */
export const planRead = <P extends readonly ReadValue[] = []>(
  what: string,
  statement: ReadStatement<P>,
  ...values: P
): PlannedRead => [what, statement, ...values]

/** Adds a test for each read, which must use an index in each mode. */
export function testReads(
  client: Client,
  reads: readonly PlannedRead[],
  modesOf: (what: string) => readonly PlanMode[] = () => FORCED_MODES,
): void {
  for (const [what, statement, ...values] of reads)
    test(what, () => assertReadByIndex(client, statement, values, modesOf(what)))
}

let prepared = 0

/** Runs a read, and asserts that its plan scans no whole table in any of the modes. */
export async function assertReadByIndex(
  client: Client,
  statement: WireStatement,
  values: readonly ReadValue[],
  modes: readonly PlanMode[] = FORCED_MODES,
): Promise<void> {
  await prepareAndExplain(client, statement, values, async (execute) => {
    await client.query(execute)
    for (const mode of modes) {
      await client.query(`set plan_cache_mode = ${mode}`)
      // After five custom plans, the server may choose a generic one. EXPLAIN counts as an execution.
      for (let run = 0; run < (mode === 'auto' ? 6 : 0); run++) await client.query(`explain ${execute}`)
      await assertNoneScanned(client, await explainPlan(client, `explain (format json) ${execute}`), mode)
    }
  })
}

/**
 * Asserts that a list uses an index when it is planned for its values. With the wrong index, it reads more buffers than
 * `bufferLimit`.
 */
export async function assertListByIndex(
  client: Client,
  statement: WireStatement,
  values: readonly ReadValue[],
  bufferLimit: number,
): Promise<void> {
  await prepareAndExplain(client, statement, values, async (execute) => {
    const plan = await explainPlan(client, `explain (analyze, buffers, format json) ${execute}`)
    await assertNoneScanned(client, plan, 'force_custom_plan')
    const buffers = plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
    assert.ok(buffers < bufferLimit, `${buffers} buffers`)
  })
}

/** Prepares a statement in custom plan mode, and passes the text that executes it to `explain`. */
async function prepareAndExplain(
  client: Client,
  { text }: WireStatement,
  values: readonly ReadValue[],
  explain: (execute: string) => Promise<void>,
): Promise<void> {
  const name = `planned_${++prepared}`
  await client.query('set plan_cache_mode = force_custom_plan')
  await client.query(`prepare ${name} as ${text}`)
  await explain(`execute ${name}${values.length === 0 ? '' : `(${values.map(toLiteral).join(', ')})`}`)
  await client.query(`deallocate ${name}`)
}

async function explainPlan(client: Client, explain: string): Promise<PlanNode> {
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(explain)
  return rows[0]!['QUERY PLAN'][0]!.Plan
}

async function assertNoneScanned(client: Client, plan: PlanNode, mode: PlanMode): Promise<void> {
  const tables = findScannedTables(plan).filter((table) => !SMALL_TABLES.includes(table))
  if (tables.length === 0) return
  const { rows: months } = await client.query<{ name: string }>(EMPTY_PARTITIONS)
  const full = tables.filter((table) => !months.some(({ name }) => name === table))
  assert.deepEqual(full, [], `tables read from end to end (${mode})`)
}

/**
 * Asserts that a write scans no table. It executes the write, so that functions, triggers and foreign keys count too.
 * `tables` are prefixes of the tables to check, since others may be empty.
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
    const before = await countScans(client, tables)
    await client.query({ text: sql.replaceAll('$slonik_', '$'), values: values as unknown[] })
    const after = await countScans(client, tables)
    await client.query('commit')
    assert.deepEqual(after, before, 'counts of scans from end to end')
  }
}

/**
 * Counts this session's sequential scans by table. Statistics of other sessions may be ten seconds late.
 * `pg_stat_xact_user_tables` would sum up all indexes at each call, so this reads the functions behind it.
 */
async function countScans(client: Client, tables: readonly string[]): Promise<Record<string, unknown>[]> {
  const { rows } = await client.query<Record<string, unknown>>({
    name: 'scans',
    text: `select relname, pg_stat_get_xact_numscans(oid) as seq_scan from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all($2)
        and (cardinality($1::text[]) = 0 or exists (select from unnest($1) name where starts_with(relname, name)))
      order by relname`,
    values: [tables, SMALL_TABLES],
  })
  return rows
}

/** Adds 2000 accounts in 400 organizations of five members each; the first member is the owner. */
export async function fillOrganizations(query: TestDatabase['query']): Promise<void> {
  await query(
    `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 2000) n`,
  )
  await query(
    `insert into organization (name, slug) select repeat('N', 200), 's' || n from generate_series(1, 400) n`,
  )
  await query(
    `insert into organization_member (organization_id, user_id, role)
     select 1 + (n - 1) / 5, n, case n % 5 when 1 then 'owner' else 'member' end from generate_series(1, 2000) n`,
  )
}

/** Returns the time `days` ago. Filters should match some rows, or the planner expects none. */
export const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
