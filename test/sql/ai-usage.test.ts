import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readUsage, readUserUsage } from '../../sql/ai/usage.ts'
import { createChance } from '../chance.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions } from '../runs.ts'

/** Usage of a time range equals the sum of its rows, although whole days come from stored sums. */

const { query } = await createTestDatabase()
const { numRuns, seed } = createRunOptions(150)
const chance = createChance(seed)
const DAYS = 6
const HOUR_MS = 3_600_000
const START = Date.UTC(2025, 11, 29)
/** Returns a random time. Half of the times lie within a millisecond of the start of a day. */
const pickTime = (): string => {
  const at = START + chance.between(0, DAYS * 24) * HOUR_MS
  return new Date(
    (chance.isHit(0.5) ? at - (at % (24 * HOUR_MS)) : at) + chance.pick([-1, 0, 0, 1]),
  ).toISOString()
}

await query(
  `insert into account (id, email, password_hash) overriding system value values (5, 'a@example.com', 'x')`,
)
const rows = Array.from({ length: 300 }, () => {
  const [user_id, owner_id] = chance.pick([
    ['5', 5],
    ['5', null],
    ['6', null],
  ])
  const [vendor, model] = chance.pick([
    ['v', 'm'],
    ['v', 'n'],
    ['w', 'm'],
    ['free', 'f'],
  ])
  return {
    ...{ user_id, owner_id, vendor, model },
    input_tokens: chance.between(0, 9),
    output_tokens: chance.between(0, 9),
    audio_seconds: chance.between(0, 99) / 4,
    cost: chance.isHit(0.7) ? chance.between(0, 99) / 1000 : null,
    estimated: chance.isHit(0.3),
    success: chance.isHit(0.8),
    created_at: pickTime(),
  }
})
const COLUMNS =
  'user_id, owner_id, vendor, model, input_tokens, output_tokens, audio_seconds, cost, estimated, success, created_at'
await query(
  `insert into ai_usage (action, ${COLUMNS}) select 'chat', ${COLUMNS} from jsonb_populate_recordset(null::ai_usage, $1::jsonb)`,
  [JSON.stringify(rows)],
)
await query(`update ai_usage set cost = null where model = 'f'`)

// Computes usage from the rows alone, without stored sums.
const selectUsageFromRows = (whose: string): string => `
  with model as (
    select vendor, model, count(*)::int as requests, sum(input_tokens + output_tokens)::int as tokens, sum(audio_seconds) as audio, sum(cost) as cost,
      count(*) filter (where cost is null)::int as unpriced, count(*) filter (where estimated)::int as estimated,
      count(*) filter (where success)::int as successes
    from ai_usage u where ${whose} and created_at >= coalesce($1::timestamptz, '-infinity')
      and created_at < coalesce($2::timestamptz, 'infinity') group by 1, 2)
  select coalesce(sum(requests), 0)::int as requests, coalesce(sum(tokens), 0)::int as tokens, coalesce(sum(audio), 0)::float8 as audio,
    (case when count(*) = 0 then 0 else sum(cost) end)::float8 as cost, coalesce(sum(unpriced), 0)::int as unpriced,
    coalesce(sum(estimated), 0)::int as estimated, coalesce(sum(successes), 0)::int as successes,
    coalesce(json_agg(json_build_object('vendor', vendor, 'model_id', model, 'requests', requests, 'tokens', tokens, 'audio_seconds', audio, 'cost', cost,
      'unpriced_requests', unpriced) order by requests desc, vendor, model), '[]') as models
  from model`

const READS = [
  { whose: 'true', read: readUsage.text, values: [] },
  { whose: `user_id = '5' and owner_id = 5`, read: readUserUsage.text, values: ['5', 5, false] },
  { whose: `user_id = '5' and owner_id is null`, read: readUserUsage.text, values: ['5', null, false] },
  { whose: `user_id = '5'`, read: readUserUsage.text, values: ['5', null, true] },
  { whose: `user_id = '7'`, read: readUserUsage.text, values: ['7', null, true] },
] as const

test('usage of any time range is the sum of its rows, wherever in a day it begins and ends', async () => {
  let met = 0
  for (let n = 0; n < numRuns; n++) {
    const { whose, read, values } = chance.pick(READS)
    // Few ranges end before they begin, so that most have usage.
    const times = [pickTime(), pickTime()].sort()
    const range = (chance.isHit(0.1) ? times.toReversed() : times).map((at) =>
      chance.isHit(0.1) ? null : at,
    )
    const [row] = await query(selectUsageFromRows(whose), range)
    const [answer] = await query(read, [...range, 5, ...values])
    const { models, ...said } = JSON.parse(Object.values(answer!)[0] as string)
    const { requests, successes, ...sums } = row as Record<string, number>
    assert.deepEqual(
      {
        requests: said.total_requests,
        rate: said.success_rate,
        tokens: said.total_tokens,
        audio: said.audio_seconds,
        cost: said.total_cost,
        unpriced: said.unpriced_requests,
        estimated: said.estimated_requests,
        models: models.map(({ percentage: _, ...model }: { percentage: number }) => model),
      },
      { requests, rate: requests === 0 ? 100 : Number(((100 * successes!) / requests!).toFixed(2)), ...sums },
      `${whose} ${range}`,
    )
    assert.equal(said.recent_activity.length, Math.min(5, requests!))
    if (requests! > 0) met += 1
  }
  assert.ok(met > numRuns / 4, `${met} ranges had usage`)
})

test('usage requires a user_id, because null stands for the sums of all users', async () => {
  for (const user of ['', 'u'.repeat(256)])
    await assert.rejects(
      query(
        `insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, estimated, success)
         values ($1, 'chat', 'v', 'm', 1, 1, false, true)`,
        [user],
      ),
      { constraint: 'ai_usage_user_id_check' },
    )
})
