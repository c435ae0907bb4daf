-- Returns the number of starts that a rate allows now, see `start_rate`.
create or replace function start_rate_allowed(r start_rate) returns integer language sql volatile
  return greatest(0, r.burst + floor(
    extract(epoch from least(clock_timestamp() - r.next_at, '0')) * r.starts / r.seconds + 0.000001)::integer);
