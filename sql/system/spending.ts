import type { ReadStatement } from '../reads/reader.ts'

/** Daily spending on models, and daily numbers of messages. */

const MAX_MODELS = 100

/**
 * Usage of the costliest models (at most {@link MAX_MODELS}) and numbers of requested messages for each of the last UTC
 * days. Omits empty days. Reads only the precomputed sums.
 */
export const readSpending: ReadStatement<[days: number]> = {
  name: 'spending',
  text: `
    with given as (
      select today - ($1::int - 1) as first, today from (select (now() at time zone 'utc')::date as today) now
    ), used as materialized (
      select vendor, model, day, sum(requests)::bigint as requests, sum(input_tokens + output_tokens)::bigint as tokens,
        sum(audio_seconds) as audio,
        sum(unpriced)::bigint as unpriced, case when sum(requests) > sum(unpriced) then sum(cost) end as cost
      from ai_usage_sum where user_id = '' and day >= (select first from given) and day <= (select today from given)
      group by vendor, model, day having sum(requests) > 0
    ), model as (
      select vendor, model, sum(requests)::bigint as requests, sum(tokens)::bigint as tokens, sum(audio) as audio, sum(unpriced)::bigint as unpriced,
        sum(cost) as cost, json_agg(json_build_object('day', day, 'requests', requests, 'tokens', tokens,
          'audio_seconds', audio, 'cost', cost) order by day) as days
      from used group by vendor, model order by sum(cost) desc nulls last, sum(requests) desc, vendor, model limit ${MAX_MODELS}
    ), sent as (
      select day, channel, outcome, sum(sends)::bigint as sends from comms_send_count
      where day >= (select first from given) and day <= (select today from given) group by day, channel, outcome
    ), message as (
      select day, channel, coalesce(sum(sends) filter (where outcome = 'sent'), 0)::bigint as sent,
        coalesce(sum(sends) filter (where outcome = 'delivered'), 0)::bigint as delivered,
        coalesce(sum(sends) filter (where outcome = 'bounced'), 0)::bigint as bounced,
        coalesce(sum(sends) filter (where outcome = 'complained'), 0)::bigint as complained,
        coalesce(sum(sends) filter (where outcome = 'failed'), 0)::bigint as failed,
        coalesce(sum(sends) filter (where outcome = 'unknown'), 0)::bigint as unknown,
        coalesce(sum(sends) filter (where outcome = 'cancelled'), 0)::bigint as cancelled,
        coalesce(sum(sends) filter (where outcome = 'waiting'), 0)::bigint as waiting
      from sent group by day, channel having sum(sends) > 0
    )
    select json_build_object('from', first, 'to', today,
      'models', (select coalesce(json_agg(json_build_object('vendor', vendor, 'model_id', model, 'requests', requests,
          'tokens', tokens, 'audio_seconds', audio, 'cost', cost, 'unpriced_requests', unpriced, 'days', days)
          order by cost desc nulls last, requests desc, vendor, model), '[]') from model),
      'sends', (select coalesce(json_agg(json_build_object('day', day, 'channel', channel, 'sent', sent,
          'delivered', delivered, 'bounced', bounced, 'complained', complained, 'failed', failed,
          'unknown', unknown, 'cancelled', cancelled, 'waiting', waiting) order by day, channel), '[]') from message))::text
    from given`,
}
