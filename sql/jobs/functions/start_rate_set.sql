-- Sets rates by name: starts, seconds and burst, see `start_rate`. A new rate holds from the next start on.
create or replace function start_rate_set(rates jsonb) returns void language sql
as $$
  insert into start_rate as r (name, starts, seconds, burst)
  select name, (rate ->> 'starts')::integer, (rate ->> 'seconds')::float8, (rate ->> 'burst')::integer
  from jsonb_each(rates) as given(name, rate) order by name
  on conflict (name) do update set starts = excluded.starts, seconds = excluded.seconds, burst = excluded.burst,
    next_at = least(r.next_at, clock_timestamp() + excluded.burst * make_interval(secs => excluded.seconds / excluded.starts))
  where (r.starts, r.seconds, r.burst) is distinct from (excluded.starts, excluded.seconds, excluded.burst)
$$;
