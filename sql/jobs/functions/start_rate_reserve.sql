-- Reserves the next start of a rate, see `start_rate`. Returns the ms until then, at most `max_wait_ms`. If the start is
-- later, reserves nothing and returns a negative number: the ms until the start. With `comes_back`, these are the ms
-- after which the caller returns. Callers that come back form a line with the gaps of the rate, so that the starts
-- suffice for them.
create or replace function start_rate_reserve(rate_name text, rate jsonb, max_wait_ms integer, comes_back boolean)
returns integer
language plpgsql
as $$
declare
  r start_rate;
  gap interval;
  at timestamptz;
  start_at timestamptz;
begin
  -- Locks the row, even if the rate is the same as before.
  perform start_rate_set(jsonb_build_object(rate_name, rate));
  select * into strict r from start_rate where name = rate_name;
  at := clock_timestamp();
  gap := make_interval(secs => r.seconds / r.starts);
  start_at := greatest(start_rate_next(r), at);
  if start_at <= at + make_interval(secs => max_wait_ms / 1000.0) then
    -- Unused starts prove that the line has ended early: its callers were cancelled.
    update start_rate set next_at = greatest(r.next_at, at) + gap,
      line_at = case when r.next_at + 2 * gap + interval '1 second' < at then '-infinity' else r.line_at end
    where name = rate_name;
    return ceil(extract(epoch from start_at - at) * 1000);
  end if;
  if comes_back then
    start_at := greatest(start_at, r.line_at + gap);
    -- Callers beyond an hour return within it at random times, so that they follow a higher rate soon.
    if start_at > at + interval '1 hour' then
      return -(1800 + 1800 * random()) * 1000;
    end if;
    update start_rate set line_at = start_at where name = rate_name;
  end if;
  return -ceil(extract(epoch from start_at - at) * 1000);
end $$;
