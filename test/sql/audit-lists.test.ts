import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { readAudit } from '../../sql/audit.ts'
import { connect } from '../../sql/driver.ts'
import { createReader } from '../../sql/reader.ts'
import { testDatabase, vacuumAnalyze } from '../database.ts'
import { assertReadByIndex, planned } from './plans-help.ts'

/** What is asked of the trail is found by an index, among 30,000 events, whichever filters are combined. */

const { query, url } = await testDatabase()
await query(
  `insert into audit_event (kind, actor_id, account_id, organization_id)
   select case when n % 500 = 0 then 'member.added' when n % 3 = 0 then 'account.signed_in' else 'account.updated' end,
     nullif(n % 50, 0), case n % 4 when 0 then n % 50 when 1 then n % 7 end, nullif(n % 20, 0)
   from generate_series(1, 30000) n`,
)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'lists' })
after(() => Promise.all([client.end(), reader.close()]))

const reads = [
  planned('of a kind', readAudit, 'member.added', null, null, null, 0, 20),
  planned('of an account', readAudit, null, 5, null, null, 0, 20),
  planned('of an organization', readAudit, null, null, 5, null, 0, 20),
  planned('of a kind and an account', readAudit, 'member.added', 5, null, null, 0, 20),
  planned('of a kind and an organization', readAudit, 'member.added', null, 5, null, 0, 20),
  planned('of all three', readAudit, 'account.updated', 5, 5, '[20000]', 0, 20),
]
// As lists are planned: for their values, which leave one condition of each filter. Without filters 10,000 rows are counted.
for (const [i, [what, statement, ...values]] of reads.entries())
  test(what, () => assertReadByIndex(client, 'force_custom_plan', `read_${i}`, statement, values))

describe('each combination of filters', () => {
  for (const kind of [null, 'account.updated', 'member.added', 'org.deleted'])
    for (const account of [null, 3, 40, 99])
      for (const organization of [null, 5, 99])
        test(`${kind}, ${account}, ${organization}`, async () => {
          const text = await reader.text(readAudit, [kind, account, organization, null, 0, 200])
          const { events, total } = JSON.parse(text!) as { events: { id: number }[]; total: number }
          const matching = await query(
            `select id::int, (count(*) over ())::int as total from audit_event
             where ($1::text is null or kind = $1) and ($2::int is null or actor_id = $2 or account_id = $2)
               and ($3::int is null or organization_id = $3) order by id desc limit 200`,
            [kind, account, organization],
          )
          assert.deepEqual(
            events.map(({ id }) => id),
            matching.map(({ id }) => id),
          )
          assert.equal(total, Math.min(10_000, Number(matching[0]?.total ?? 0)))
        })
})
