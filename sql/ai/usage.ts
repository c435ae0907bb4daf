import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement, ReadValue } from '../reads/reader.ts'

/** Token usage of models, and its cost. */

const START_BOUND = `coalesce($1::timestamptz, '-infinity')`
const END_BOUND = `coalesce($2::timestamptz, 'infinity')`
// The index of the maintained sums covers all of these columns.
const SUM_COLUMNS = `s.vendor, s.model, s.requests, s.successes, s.input_tokens, s.output_tokens, s.audio_seconds, s.unpriced,
  s.estimated, s.cost`

// Larger integers are not exact in JSON, and the answer's schema refuses them.
const clampCount = (sum: string): string => `least(${sum}, ${Number.MAX_SAFE_INTEGER})`

// Builds a statement that reads the usage in a period, and the `recent` latest rows. The period includes `start` and
// excludes `end`; null leaves it open. Reads whole UTC days from maintained sums, and the hours before the first and
// after the last whole day from rows. `whose` is the condition on rows, `summed` the condition on sums.
const buildUsageStatement = <M extends readonly ReadValue[]>(
  name: string,
  whose: string,
  summed: string,
): ReadStatement<[start: string | null, end: string | null, recent: number, ...more: M]> => ({
  name,
  text: `
    with given as (
      select *, first::timestamp at time zone 'utc' as first_at, greatest(first, after_last)::timestamp at time zone 'utc' as last_at
      from (select (${START_BOUND} at time zone 'utc' - interval '1 microsecond')::date + 1 as first,
        (${END_BOUND} at time zone 'utc')::date as after_last) days
    ), part as (
      select ${SUM_COLUMNS} from ai_usage_sum s
      where ${summed} and s.day >= (select first from given) and s.day < (select after_last from given)
      union all
      select ${SUM_COLUMNS} from ai_usage u cross join ai_usage_sum_of(u) s
      where ${whose} and ${summed} and u.created_at >= ${START_BOUND} and u.created_at < (select least(first_at, ${END_BOUND}) from given)
      union all
      select ${SUM_COLUMNS} from ai_usage u cross join ai_usage_sum_of(u) s
      where ${whose} and ${summed} and u.created_at >= (select last_at from given) and u.created_at < ${END_BOUND}
    ), model as materialized (
      select vendor, model, sum(requests) as requests, sum(successes) as successes, ${clampCount('sum(input_tokens)')} as input,
        ${clampCount('sum(output_tokens)')} as output, sum(audio_seconds) as audio, case when sum(requests) > sum(unpriced) then sum(cost) end as cost,
        sum(unpriced) as unpriced, sum(estimated) as estimated
      from part group by vendor, model having sum(requests) > 0
    ), total as (
      select coalesce(sum(requests), 0) as requests, coalesce(sum(successes), 0) as successes, ${clampCount('coalesce(sum(input), 0)')} as input,
        ${clampCount('coalesce(sum(output), 0)')} as output, coalesce(sum(audio), 0) as audio, coalesce(sum(unpriced), 0) as unpriced, coalesce(sum(estimated), 0) as estimated,
        -- No usage costs 0; usage without any known price has a null cost.
        case when count(*) = 0 then 0 else sum(cost) end as cost
      from model
    )
    select json_build_object('total_tokens', ${clampCount('t.input + t.output')}, 'input_tokens', t.input, 'output_tokens', t.output, 'audio_seconds', t.audio,
      'total_cost', t.cost, 'unpriced_requests', t.unpriced, 'estimated_requests', t.estimated,
      'total_requests', t.requests,
      'success_rate', case when t.requests = 0 then 100 else round(100.0 * t.successes / t.requests, 2) end,
      'models', (select coalesce(json_agg(json_build_object('model_id', m.model, 'vendor', m.vendor, 'requests', m.requests,
          'tokens', ${clampCount('m.input + m.output')}, 'audio_seconds', m.audio, 'cost', m.cost, 'unpriced_requests', m.unpriced,
          'percentage', round(100.0 * m.requests / t.requests, 2)) order by m.requests desc, m.vendor, m.model), '[]')
        from (select * from model order by requests desc, vendor, model limit 1000) m),
      'recent_activity', (select coalesce(json_agg(json_build_object('timestamp', iso(r.created_at), 'model', r.model,
          'vendor', r.vendor, 'input_tokens', r.input_tokens, 'output_tokens', r.output_tokens, 'audio_seconds', r.audio_seconds, 'cost', r.cost,
          'estimated', r.estimated, 'success', r.success, 'action', r.action) order by r.created_at desc, r.id desc), '[]')
        from (select * from ai_usage u where ${whose} and u.created_at >= ${START_BOUND} and u.created_at < ${END_BOUND}
          order by u.created_at desc, u.id desc limit $3::int) r))::text
    from total t`,
})

/** All usage. */
export const readUsage = buildUsageStatement<[]>('ai_usage', 'true', `s.user_id = ''`)

/**
 * Usage of a user_id by the account `owner`, or without an account if `owner` is null. If `ofAnybody` is true, any
 * owner matches.
 */
export const readUserUsage = buildUsageStatement<[userId: string, owner: number | null, ofAnybody: boolean]>(
  'ai_usage_of',
  'u.user_id = $4::text and ($6::boolean or u.owner_id is not distinct from $5::int)',
  's.user_id = $4::text and ($6::boolean or s.owner_id = coalesce($5::int, 0))',
)

/** Usage of a model outside of turns. */
export interface UsageRecord {
  readonly userId: string
  readonly conversationId: string | null
  readonly action: string
  readonly vendor: string
  readonly model: string
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
  /** Cost as an exact decimal; null if the price is unknown. */
  readonly cost: string | null
  readonly estimated: boolean
  readonly success: boolean
}

export const insertUsage = (usage: UsageRecord): Query<unknown> =>
  sql.type(noRows)`
    insert into ai_usage (user_id, conversation_id, action, vendor, model, input_tokens, cached_tokens, output_tokens,
      reasoning_tokens, cost, estimated, success)
    values (${usage.userId}, ${usage.conversationId}::uuid, ${usage.action}, ${usage.vendor}, ${usage.model}, ${usage.input},
      ${usage.cached}, ${usage.output}, ${usage.reasoning}, ${usage.cost}::numeric, ${usage.estimated}, ${usage.success})`
