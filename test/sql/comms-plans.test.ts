import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { CHANNELS, readSend, readSends, readUnknownCount, SEND_STATUSES } from '../../sql/comms.ts'
import { connect } from '../../sql/driver.ts'
import { createReader } from '../../sql/reader.ts'
import { testDatabase, vacuumAnalyze } from '../database.ts'
import { assertReadByIndex, PLAN_MODES, planned } from './plans-help.ts'

/** What is asked of the ledger is found by an index, among 30,000 sends; and everybody finds what they may see. */

const { query, url } = await testDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 100) n`,
)
await query(
  `insert into comms_send (id, channel, purpose, owner_id, job_id, recipients, message, status, error_code, requested_at, settled_at)
   select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
     case when n % 1000 = 0 then 'call' when n % 5 = 0 then 'sms' else 'email' end,
     case when n % 7 = 0 then 'account' else 'caller' end, case when n % 7 > 1 then 1 + n % 50 end, gen_random_uuid(), '{x}', '{}',
     state, case state when 'failed' then 'x' end, case when state <> 'queued' then now() end,
     case when state in ('sent', 'failed', 'unknown') then now() end
   from generate_series(1, 30000) n, lateral (select case n % 300 when 0 then 'failed' when 1 then 'unknown' when 2 then 'queued'
     when 3 then 'sending' else 'sent' end as state) of_it`,
)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'plans' })
after(() => Promise.all([client.end(), reader.close()]))
const [{ id }] = (await query('select id from comms_send limit 1')) as [{ id: string }]

const reads = [
  planned('all', readSends, 1, true, null, null, null, 0, 100),
  planned('of a channel', readSends, 1, true, 'call', null, null, 0, 100),
  planned('of a status', readSends, 1, true, null, 'unknown', null, 0, 100),
  planned('sent ones', readSends, 1, true, null, 'sent', null, 0, 100),
  planned('of a channel and a status', readSends, 1, true, 'call', 'failed', null, 0, 100),
  planned('own', readSends, 5, false, null, null, null, 0, 100),
  planned('own of a status', readSends, 5, false, null, 'failed', null, 0, 100),
  planned('of nobody', readSends, null, false, null, null, null, 0, 100),
  planned('one', readSend, 5, false, id),
  planned('how many have an unknown outcome', readUnknownCount),
]
for (const mode of PLAN_MODES)
  for (const [i, [what, statement, ...values]] of reads.entries())
    test(`${what} (${mode})`, () => assertReadByIndex(client, mode, `read_${mode}_${i}`, statement, values))

describe('each combination of caller, channel and status', () => {
  for (const [who, everything] of [
    [1, true],
    [5, false],
    [99, false],
    [null, false],
  ] as const)
    for (const channel of [null, ...CHANNELS])
      for (const status of [null, ...SEND_STATUSES])
        test(`${everything ? 'an admin' : who}, ${channel}, ${status}`, async () => {
          const found = await reader.text(readSends, [who, everything, channel, status, null, 0, 1000])
          const seen = await query(
            `select id from comms_send where ($1 or owner_id = $2::int or owner_id is null and purpose = 'caller')
             and ($3::text is null or channel = $3) and ($4::text is null or status = $4) order by id desc limit 1000`,
            [everything, who, channel, status],
          )
          assert.deepEqual(
            JSON.parse(found!.split('\n')[1]!).map((send: { id: string }) => send.id),
            seen.map((send) => send.id),
          )
        })
})
