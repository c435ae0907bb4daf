create or replace function ai_sentiment_sum_of(s ai_sentiment) returns setof ai_sentiment_sum language sql immutable as $$
  select null::bigint, whose, s.sentiment, s.performance, 1, s.score::numeric
  from unnest(array[0, s.owner_id]) whose where whose is not null
$$;
