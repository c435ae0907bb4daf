create or replace function ai_sentiment_sum_of(s ai_sentiment) returns setof ai_sentiment_sum language sql immutable as $$
  select null::bigint, sum_owner, s.sentiment, s.performance, 1, s.score::numeric
  from unnest(array[0, s.owner_id]) sum_owner where sum_owner is not null
$$;
