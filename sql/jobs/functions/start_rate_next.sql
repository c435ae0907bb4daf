-- Returns the time at which a rate allows the next start, see `start_rate`.
create or replace function start_rate_next(r start_rate) returns timestamptz language sql immutable
  return r.next_at - (r.burst - 1) * make_interval(secs => r.seconds / r.starts);
