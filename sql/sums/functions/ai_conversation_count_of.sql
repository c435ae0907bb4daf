create or replace function ai_conversation_count_of(c ai_conversation) returns setof ai_conversation_count language sql immutable as $$
  select null::bigint, (c.created_at at time zone 'utc')::date, 1
$$;
