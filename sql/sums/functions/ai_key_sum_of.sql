create or replace function ai_key_sum_of(u ai_usage) returns setof ai_key_sum language sql immutable as $$
  select null::bigint, u.key_id, (u.created_at at time zone 'utc')::date, u.input_tokens + u.output_tokens,
    coalesce(u.cost, 0), (u.cost is null)::integer::bigint
  where u.key_id is not null
$$;
