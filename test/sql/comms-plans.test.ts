import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  applySendEvents,
  CHANNELS,
  readSend,
  readSends,
  readUnknownSendCount,
  SEND_STATUSES,
  type SendEvent,
} from '../../sql/comms/sends.ts'
import { filterSuppressed, liftSuppression, readSuppressions } from '../../sql/comms/suppressions.ts'
import { connect } from '../../sql/connections/driver.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertListByIndex, assertWriteByIndex, GENERIC_PLANS, planRead, testReads } from './plans-help.ts'

/** Lists of sends use an index, with 8,000 sends, and return exactly the sends that the caller may see. */

const { query, url } = await createTestDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 100) n`,
)
await query(
  `insert into comms_send (id, channel, purpose, owner_id, job_id, recipients, message, provider_id, status, send_at, error_code, requested_at, settled_at, created_at)
   select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
     case when n % 1000 = 0 then 'call' when n % 5 = 0 then 'sms' else 'email' end,
     case when n % 7 = 0 then 'account' else 'caller' end, case when n % 7 > 1 then 1 + n % 50 end, gen_random_uuid(), '{x}', '{}', case when state in ('sent', 'delivered', 'bounced', 'complained') then 'p' || n end,
     state, case state when 'scheduled' then now() end, case state when 'failed' then 'x' end, case when state not in ('scheduled', 'queued', 'cancelled') then now() end,
     case when state not in ('scheduled', 'queued', 'sending') then now() end,
     timestamptz '2026-01-01' + n / 3 * interval '150 s'
   from generate_series(1, 8000) n, lateral (select case n % 300 when 0 then 'failed' when 1 then 'unknown' when 2 then 'queued'
     when 3 then 'sending' when 4 then 'bounced' when 5 then 'complained' when 6 then 'scheduled' when 7 then 'cancelled'
     else case when n % 2 = 0 then 'sent' else 'delivered' end end as state) of_it`,
)
await query(`insert into comms_suppression (address, stream, reason, send_id, created_at)
  select n || '@example.com', stream, 'bounced', gen_random_uuid(), now() - n * interval '1 minute'
  from generate_series(1, 2000) n, unnest(array['transactional', 'broadcast']) stream`)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'plans', startOptions: GENERIC_PLANS })
after(() => Promise.all([client.end(), reader.close()]))
const [{ id }] = (await query('select id from comms_send limit 1')) as [{ id: string }]

const ANY_TIME = [null, null] as const
// 360 sends.
const TIME_RANGE = ['2026-01-02T00:00:00Z', '2026-01-02T05:00:00Z'] as const
const DIRECTIONS = ['asc', 'desc'] as const

const filteredLists = [
  ['all', 1, true, null, null],
  ['of a channel', 1, true, 'call', null],
  ['of a status', 1, true, null, 'unknown'],
  ['sent ones', 1, true, null, 'sent'],
  ['delivered ones', 1, true, null, 'delivered'],
  ['without an owner, of a status', null, false, null, 'bounced'],
  ['of a channel and a status', 1, true, 'call', 'failed'],
  ['own', 5, false, null, null],
  ['own of a channel', 5, false, 'sms', null],
  ['own of a status', 5, false, null, 'failed'],
  ['without an owner', null, false, null, null],
  ['without an owner, of a channel', null, false, 'call', null],
] as const

const reads = [
  ...filteredLists.flatMap(([what, ...filters]) =>
    DIRECTIONS.flatMap((way) =>
      [ANY_TIME, TIME_RANGE].map((time) =>
        planRead(
          `${what} (${way}, ${time[0]})`,
          readSends.created_at[way],
          ...filters,
          ...time,
          null,
          0,
          100,
        ),
      ),
    ),
  ),
  planRead('a send', readSend, 5, false, id),
  planRead('the number of unknown outcomes', readUnknownSendCount),
  planRead('suppressed addresses', readSuppressions, null, null, 0, 100),
  planRead('suppressed addresses of a stream', readSuppressions, 'broadcast', null, 0, 100),
]
describe('reads by index', () => testReads(client, reads))

describe('writes of events and admins', () => {
  const event = (n: number, status: 'delivered' | 'bounced'): SendEvent => ({
    channel: 'email',
    providerId: `p${n}`,
    sendId: null,
    status,
    providerStatus: status,
    errorCode: null,
    detail: null,
    ...(status === 'bounced' ? { suppression: { address: `new${n}@example.com`, eventId: `msg_${n}` } } : {}),
  })
  const addresses = Array.from({ length: 50 }, (_, n) => `${n}@example.com`)
  let next = 0
  for (const [what, make] of [
    ['a delivery', () => applySendEvents([event(++next, 'delivered')])],
    ['several bounces', () => applySendEvents([++next, ++next, ++next].map((n) => event(n, 'bounced')))],
    ['an event with the id of a send', () => applySendEvents([{ ...event(0, 'delivered'), sendId: id }])],
    ['filtering fifty addresses', () => filterSuppressed(addresses, 'broadcast')],
    ['lifting a suppression', () => liftSuppression('7@example.com', null)],
  ] as const)
    test(what, () => assertWriteByIndex(client, make, 'comms_s'))
})

// Page size of the compared lists.
const PAGE_SIZE = 60

interface Send {
  readonly id: string
  readonly owner_id: number | null
  readonly purpose: string
  readonly channel: string
  readonly status: string
  readonly created_at: Date
}

describe('lists with each combination of caller, channel, status, time and direction', () => {
  let sends: readonly Send[] = []
  before(async () => {
    const rows = await query(
      'select id, owner_id, purpose, channel, status, created_at from comms_send order by created_at, id',
    )
    sends = rows as unknown as Send[]
  })
  for (const [who, everything] of [
    [1, true],
    [5, false],
    [99, false],
    [null, false],
  ] as const)
    for (const channel of [null, ...CHANNELS])
      test(`${everything ? 'an admin' : who}, ${channel}`, async () => {
        const seen = sends.filter(
          (send) =>
            (everything || (send.owner_id === null ? send.purpose === 'caller' : send.owner_id === who)) &&
            (channel === null || send.channel === channel),
        )
        for (const status of [null, ...SEND_STATUSES])
          for (const [from, to] of [
            ANY_TIME,
            TIME_RANGE,
            ['2026-01-05T00:00Z', null],
            [null, '2026-01-02T00:00Z'],
          ])
            for (const way of DIRECTIONS) {
              const values = [who, everything, channel, status, from!, to!, null, 0, PAGE_SIZE] as const
              const found = await reader.text(readSends.created_at[way], values)
              const matching = seen.filter(
                (send) =>
                  (status === null || send.status === status) &&
                  (from === null || send.created_at >= new Date(from!)) &&
                  (to === null || send.created_at < new Date(to!)),
              )
              const combination = { status, from, to, way }
              assert.deepEqual(
                { ...combination, ids: JSON.parse(found!.split('\n')[1]!).map((send: Send) => send.id) },
                {
                  ...combination,
                  ids: (way === 'asc' ? matching : matching.toReversed())
                    .slice(0, PAGE_SIZE)
                    .map(({ id }) => id),
                },
              )
            }
      })
})

describe('finds rare sends by an index, with about one buffer per row of a page', () => {
  // There are 8 calls, 26 failed sends and 360 sends in the 5 hours of the filter. With the wrong index, a list reads
  // up to 8,000 buffers.
  for (const filters of [
    [1, true, 'call', null, ...ANY_TIME],
    [1, true, null, 'failed', ...ANY_TIME],
    [5, false, 'call', null, ...ANY_TIME],
    [1, true, null, null, ...TIME_RANGE],
  ] as const)
    test(filters.join(), () =>
      assertListByIndex(client, readSends.created_at.desc, [...filters, null, 0, 20], 100),
    )
})

test('estimates few rows for a status that a channel never has, so that no plan scans the channel', async () => {
  await query(`insert into comms_send (id, channel, purpose, job_id, recipients, message, status, requested_at, settled_at, created_at)
    select gen_random_uuid(), 'call', 'caller', gen_random_uuid(), '{x}', '{}', 'sent', now(), now(), timestamptz '2026-02-01' + n * interval '1 s'
    from generate_series(1, 2000) n`)
  await query('analyze comms_send')
  const [plan] = await query(
    `explain (format json) select from comms_send where channel = 'call' and status = 'delivered'`,
  )
  const [{ Plan: top }] = plan!['QUERY PLAN'] as [{ Plan: { 'Plan Rows': number } }]
  // If the planner treated channel and status as independent, it would expect 780 rows.
  assert.ok(top['Plan Rows'] < 100, `${top['Plan Rows']} rows expected`)
})
