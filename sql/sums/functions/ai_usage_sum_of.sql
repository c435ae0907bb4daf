create or replace function ai_usage_sum_of(u ai_usage) returns setof ai_usage_sum language sql immutable as $$
  select null::bigint, sum_key.user_id, sum_key.owner_id, (u.created_at at time zone 'utc')::date, u.vendor, u.model, 1,
    u.success::integer, u.input_tokens, u.output_tokens, u.audio_seconds, (u.cost is null)::integer, u.estimated::integer, coalesce(u.cost, 0)
  from (values ('', 0), (u.user_id, coalesce(u.owner_id, 0))) sum_key (user_id, owner_id)
$$;
