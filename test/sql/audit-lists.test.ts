import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { readAudit } from '../../sql/audit/audit.ts'
import { connect } from '../../sql/connections/driver.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertListByIndex, GENERIC_PLANS, planRead, testReads } from './plans-help.ts'

/** Lists of the audit trail use an index for any combination of filters, with 12,000 events. */

const { query, url } = await createTestDatabase()
await query(
  `insert into audit_event (at, kind, actor_id, account_id, organization_id)
   select timestamptz '2026-01-01' + n / 3 * interval '100 s', case when n % 500 = 0 then 'member.added' when n % 3 = 0 then 'account.signed_in' else 'account.updated' end,
     nullif(n % 50, 0), case n % 4 when 0 then n % 50 when 1 then n % 7 end, nullif(n % 20, 0)
   from generate_series(1, 12000) n`,
)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'lists', startOptions: GENERIC_PLANS })
after(() => Promise.all([client.end(), reader.close()]))

const DIRECTIONS = ['asc', 'desc'] as const
const ANY_TIME = [null, null] as const
// 540 events.
const TIME_RANGE = ['2026-01-02T00:00:00Z', '2026-01-02T05:00:00Z'] as const
const CURSOR = '["2026-01-02T03:00:00Z",2917]'
const reads = DIRECTIONS.flatMap((way) => {
  const audit = readAudit.at[way]
  return [
    planRead(`of a time (${way})`, audit, null, null, null, ...TIME_RANGE, null, 0, 20),
    ...[ANY_TIME, TIME_RANGE].flatMap((time) => {
      const how = `(${way}, ${time[0]})`
      return [
        planRead(`of a kind ${how}`, audit, 'member.added', null, null, ...time, null, 0, 20),
        planRead(`of an account ${how}`, audit, null, 5, null, ...time, null, 0, 20),
        planRead(`of an organization ${how}`, audit, null, null, 5, ...time, null, 0, 20),
        planRead(`of a kind and an account ${how}`, audit, 'member.added', 5, null, ...time, null, 0, 20),
        planRead(
          `of a kind and an organization ${how}`,
          audit,
          'member.added',
          null,
          5,
          ...time,
          null,
          0,
          20,
        ),
        planRead(`of all three ${how}`, audit, 'account.updated', 5, 5, ...time, CURSOR, 0, 20),
      ]
    }),
  ]
})
// Lists get custom plans, so that each filter becomes one condition. The total of a list without filters counts up to
// 10,000 rows.
describe('reads by index', () => testReads(client, reads, () => ['force_custom_plan']))

describe('finds old events by an index, with about one buffer per row of a page', () => {
  const values = [null, null, null, '2026-01-02T00:00:00Z', '2026-01-02T00:10:00Z', null, 0, 20] as const
  for (const way of DIRECTIONS) test(way, () => assertListByIndex(client, readAudit.at[way], values, 100))
})

interface Event {
  readonly id: number
  readonly at: Date
  readonly kind: string
  readonly actor_id: number | null
  readonly account_id: number | null
  readonly organization_id: number | null
}

describe('lists with each combination of filters, times and directions', () => {
  let all: readonly Event[] = []
  before(async () => {
    const rows = await query(
      'select id::int, at, kind, actor_id, account_id, organization_id from audit_event order by at, id',
    )
    all = rows as unknown as Event[]
  })
  for (const kind of [null, 'account.updated', 'member.added', 'org.deleted'])
    for (const account of [null, 3, 40, 99])
      test(`${kind}, ${account}`, async () => {
        const seen = all.filter(
          (event) =>
            (kind === null || event.kind === kind) &&
            (account === null || event.actor_id === account || event.account_id === account),
        )
        for (const organization of [null, 5, 99])
          for (const [from, to] of [
            ANY_TIME,
            TIME_RANGE,
            ['2026-01-05T00:00Z', null],
            [null, '2026-01-02T00:00Z'],
          ])
            for (const way of DIRECTIONS) {
              const values = [kind, account, organization, from!, to!, null, 0, 50] as const
              const text = await reader.text(readAudit.at[way], values)
              const { events, total } = JSON.parse(text!) as { events: Event[]; total: number }
              const matching = seen.filter(
                (event) =>
                  (organization === null || event.organization_id === organization) &&
                  (from === null || event.at >= new Date(from!)) &&
                  (to === null || event.at < new Date(to!)),
              )
              const combination = { organization, from, to, way }
              assert.deepEqual(
                { ...combination, total, ids: events.map(({ id }) => id) },
                {
                  ...combination,
                  total: Math.min(10_000, matching.length),
                  ids: (way === 'asc' ? matching : matching.toReversed()).slice(0, 50).map(({ id }) => id),
                },
              )
            }
      })
})
