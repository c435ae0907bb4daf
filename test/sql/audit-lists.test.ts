import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { readAudit } from '../../sql/audit.ts'
import { connect } from '../../sql/driver.ts'
import { createReader } from '../../sql/reader.ts'
import { testDatabase, vacuumAnalyze } from '../database.ts'
import { assertReadByIndex, buffersOf, planned } from './plans-help.ts'

/** What is asked of the trail is found by an index, among 20,000 events, whichever filters are combined. */

const { query, url } = await testDatabase()
await query(
  `insert into audit_event (at, kind, actor_id, account_id, organization_id)
   select timestamptz '2026-01-01' + n / 3 * interval '1 minute', case when n % 500 = 0 then 'member.added' when n % 3 = 0 then 'account.signed_in' else 'account.updated' end,
     nullif(n % 50, 0), case n % 4 when 0 then n % 50 when 1 then n % 7 end, nullif(n % 20, 0)
   from generate_series(1, 20000) n`,
)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'lists' })
after(() => Promise.all([client.end(), reader.close()]))

const WAYS = ['asc', 'desc'] as const
const ANY = [null, null] as const
// Of 900 events, in the first days of twenty.
const HOURS = ['2026-01-02T00:00:00Z', '2026-01-02T05:00:00Z'] as const
const CURSOR = '["2026-01-02T03:00:00Z",4000]'
const reads = WAYS.flatMap((way) => {
  const audit = readAudit.at[way]
  return [
    planned(`of a time (${way})`, audit, null, null, null, ...HOURS, null, 0, 20),
    ...[ANY, HOURS].flatMap((time) => {
      const how = `(${way}, ${time[0]})`
      return [
        planned(`of a kind ${how}`, audit, 'member.added', null, null, ...time, null, 0, 20),
        planned(`of an account ${how}`, audit, null, 5, null, ...time, null, 0, 20),
        planned(`of an organization ${how}`, audit, null, null, 5, ...time, null, 0, 20),
        planned(`of a kind and an account ${how}`, audit, 'member.added', 5, null, ...time, null, 0, 20),
        planned(`of a kind and an organization ${how}`, audit, 'member.added', null, 5, ...time, null, 0, 20),
        planned(`of all three ${how}`, audit, 'account.updated', 5, 5, ...time, CURSOR, 0, 20),
      ]
    }),
  ]
})
// As lists are planned: for their values, which leave one condition of each filter. Without filters 10,000 rows are counted.
for (const [i, [what, statement, ...values]] of reads.entries())
  test(what, () => assertReadByIndex(client, 'force_custom_plan', `read_${i}`, statement, values))

test('a time long ago is found by as few buffers as a page has rows', async () => {
  for (const way of WAYS) {
    const values = [null, null, null, '2026-01-02T00:00:00Z', '2026-01-02T00:10:00Z', null, 0, 20] as const
    const buffers = await buffersOf(client, readAudit.at[way], values)
    assert.ok(buffers < 100, `${buffers} buffers`)
  }
})

describe('each combination of filters, times and directions', () => {
  for (const kind of [null, 'account.updated', 'member.added', 'org.deleted'])
    for (const account of [null, 3, 40, 99])
      for (const organization of [null, 5, 99])
        for (const [from, to] of [ANY, HOURS, ['2026-01-05T00:00Z', null], [null, '2026-01-02T00:00Z']])
          for (const way of WAYS)
            test(`${kind}, ${account}, ${organization}, ${from}, ${to}, ${way}`, async () => {
              const values = [kind, account, organization, from!, to!, null, 0, 200] as const
              const text = await reader.text(readAudit.at[way], values)
              const { events, total } = JSON.parse(text!) as { events: { id: number }[]; total: number }
              const matching = await query(
                `select id::int, (count(*) over ())::int as total from audit_event
                 where ($1::text is null or kind = $1) and ($2::int is null or actor_id = $2 or account_id = $2)
                   and ($3::int is null or organization_id = $3)
                   and at >= coalesce($4::timestamptz, '-infinity') and at < coalesce($5::timestamptz, 'infinity')
                 order by at ${way}, id ${way} limit 200`,
                [kind, account, organization, from, to],
              )
              assert.deepEqual(
                events.map(({ id }) => id),
                matching.map(({ id }) => id),
              )
              assert.equal(total, Math.min(10_000, Number(matching[0]?.total ?? 0)))
            })
})
