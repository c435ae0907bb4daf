import { connect } from '../../../sql/connections/driver.ts'

/** Counts the statements of one database with `pg_stat_statements`. */
export interface StatementCounter {
  /** Runs work, and returns the number of statements meanwhile. */
  count(work: () => Promise<unknown>): Promise<number>
  /** Returns the statements of the last count, most frequent first. */
  list(): Promise<readonly unknown[]>
  close(): Promise<void>
}

const MAX_LISTED = 40

/** Starts a counter, whose own statements run in another database. */
export async function startCountingStatements(url: string): Promise<StatementCounter> {
  const [, server, name] = /^(.*)\/([^/]+)$/.exec(url)!
  const client = await connect({ url: `${server}/postgres`, applicationName: 'statements' })
  await client.query('create extension if not exists pg_stat_statements')
  const { rows } = await client.query('select oid::int from pg_database where datname = $1', [name])
  const oid = rows[0]!.oid as number
  return {
    count: async (work) => {
      await client.query('select pg_stat_statements_reset(0, $1::oid, 0)', [oid])
      await work()
      const text = 'select coalesce(sum(calls), 0)::int as calls from pg_stat_statements where dbid = $1::oid'
      return (await client.query(text, [oid])).rows[0]!.calls
    },
    list: async () => {
      const text = `select calls::int, left(regexp_replace(query, '\\s+', ' ', 'g'), 160) as query
        from pg_stat_statements where dbid = $1::oid order by calls desc limit ${MAX_LISTED}`
      return (await client.query(text, [oid])).rows
    },
    close: () => client.end(),
  }
}
