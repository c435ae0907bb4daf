import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CHANNELS } from '../../sql/comms/sends.ts'
import { connect } from '../../sql/connections/driver.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { readSpending } from '../../sql/system/spending.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { planRead, testReads } from './plans-help.ts'

/** Stored sums of daily costs equal those computed from the rows of models and sends. */

const { url, query } = await createTestDatabase()
const reader = createReader({ url, applicationName: 'spending' })
const client = await connect({ url, applicationName: 'plans' })
after(() => Promise.all([reader.close(), client.end()]))

const AGO = `now() - n * interval '400 minutes'`
// A fifth of the rows has no price, and one model has no price at all.
await query(`insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, audio_seconds, cost, estimated, success, created_at)
  select (n % 50)::text, 'chat', 'v', 'm' || n % 3, n % 7, 1, n % 5 * 0.5, case when n % 5 > 0 and n % 3 > 0 then n * 0.0001 end, false, true, ${AGO}
  from generate_series(0, 1500) n`)
await query(`insert into comms_send (id, channel, job_id, recipients, status, send_at, provider_id, message, requested_at, settled_at, error_code, created_at)
  select gen_random_uuid(), case when n % 10 = 0 then 'call' when n % 10 = 1 then 'sms' else 'email' end, gen_random_uuid(), '{x}', state, case state when 'scheduled' then now() end, 'p' || n, '{}',
    now(), case when state not in ('scheduled', 'queued', 'sending') then now() end, case state when 'failed' then 'x' end, ${AGO}
  from generate_series(0, 1500) n, lateral (select (array['sent', 'delivered', 'bounced', 'complained', 'failed', 'unknown', 'queued', 'sending', 'scheduled', 'cancelled'])[1 + n % 10] as state) of_it`)
await vacuumAnalyze(query)

interface Spending {
  readonly from: string
  readonly to: string
  readonly models: readonly {
    readonly model_id: string
    readonly requests: number
    readonly tokens: number
    readonly audio_seconds: number
    readonly cost: number | null
    readonly unpriced_requests: number
    readonly days: readonly {
      day: string
      requests: number
      tokens: number
      audio_seconds: number
      cost: number | null
    }[]
  }[]
  readonly sends: readonly Readonly<Record<string, string | number>>[]
}
const read = async (days: number): Promise<Spending> => JSON.parse((await reader.text(readSpending, [days]))!)

for (const days of [1, 30, 366])
  describe(`${days} days`, () => {
    const SINCE = `(created_at at time zone 'utc')::date > (now() at time zone 'utc')::date - ${days}`
    const DAY = `(created_at at time zone 'utc')::date::text as day`

    test('models cost the sum of their requests, the most expensive first', async () => {
      const { models, from, to } = await read(days)
      const [given] = await query(`select today::text as to, (today - ${days - 1})::text as from
        from (select (now() at time zone 'utc')::date as today) now`)
      assert.deepEqual({ from, to }, given)
      const sums = `count(*)::int as requests, sum(input_tokens + output_tokens)::int as tokens,
        sum(audio_seconds)::float8 as audio_seconds, sum(cost)::float8 as cost`
      const rows =
        await query(`select model as model_id, ${sums}, count(*) filter (where cost is null)::int as unpriced_requests
        from ai_usage where ${SINCE} group by 1 order by 5 desc nulls last`)
      assert.deepEqual(
        models.map(({ model_id, requests, tokens, audio_seconds, cost, unpriced_requests }) => ({
          ...{ model_id, requests, tokens, audio_seconds, cost, unpriced_requests },
        })),
        rows,
      )
      assert.equal(models.at(-1)!.cost, null)
      const ofDays = await query(
        `select ${DAY}, ${sums} from ai_usage where ${SINCE} and model = $1 group by 1 order by 1`,
        [models[0]!.model_id],
      )
      assert.deepEqual(models[0]!.days, ofDays)
    })

    test('messages are counted by channel and outcome', async () => {
      const { sends } = await read(days)
      const outcomes = ['sent', 'delivered', 'bounced', 'complained', 'failed', 'unknown', 'cancelled'].map(
        (status) => `count(*) filter (where status = '${status}')::int as ${status}`,
      )
      const rows = await query(`select ${DAY}, channel, ${outcomes},
          count(*) filter (where status in ('scheduled', 'queued', 'sending'))::int as waiting
        from comms_send where ${SINCE} group by 1, 2 order by 1, 2`)
      assert.deepEqual(sends, rows)
      // A day that has just begun may lack some channels.
      if (days > 1) assert.deepEqual(new Set(sends.map(({ channel }) => channel)), new Set(CHANNELS))
    })
  })

test('a service without usage has no costs', async () => {
  await query('delete from ai_usage; delete from comms_send')
  const { models, sends } = await read(366)
  assert.deepEqual({ models, sends }, { models: [], sends: [] })
})

describe('both reads use an index', () => {
  before(async () => {
    await query(`insert into comms_send_count (day, channel, outcome, sends)
      select (now() at time zone 'utc')::date - n, channel, outcome, 1 from generate_series(1, 700) n,
        unnest(array['email', 'sms', 'call']) channel, unnest(array['sent', 'failed']) outcome`)
    await query(`insert into ai_usage_sum (user_id, owner_id, day, vendor, model, requests, successes, input_tokens, output_tokens,
        unpriced, estimated, cost)
      select case when u > 0 then u::text else '' end, u, (now() at time zone 'utc')::date - n, 'v', 'm', 1, 1, 1, 1, 0, 0, 1
      from generate_series(0, 20) u, generate_series(1, 250) n`)
    await vacuumAnalyze(query)
  })
  testReads(
    client,
    [1, 30].map((days) => planRead(`of ${days} days`, readSpending, days)),
  )
})
