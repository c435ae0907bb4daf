-- Counts a request against a limit of `max_hits` per `span`. Returns 0 if it is allowed, else the milliseconds until
-- the next request is.
create or replace function request_limit_acquire(name text, subject text, max_hits integer, span interval)
returns integer language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz;
  recent timestamptz[];
begin
  loop
    insert into request_limit (name, subject, hits, expires_at)
    values (request_limit_acquire.name, request_limit_acquire.subject, '{}', clock_timestamp() + span)
    on conflict on constraint request_limit_pkey do nothing;
    select hits into recent from request_limit r
    where r.name = request_limit_acquire.name and r.subject = request_limit_acquire.subject for update;
    -- The pruner may have deleted the row in between. The loop then inserts it again.
    exit when found;
  end loop;
  at := clock_timestamp();
  select coalesce(array_agg(hit order by hit), '{}') into recent from unnest(recent) hit where hit > at - span;
  if cardinality(recent) >= max_hits then
    return greatest(1, ceil(extract(epoch from recent[cardinality(recent) - max_hits + 1] + span - at) * 1000));
  end if;
  update request_limit r set hits = recent || at, expires_at = at + span
  where r.name = request_limit_acquire.name and r.subject = request_limit_acquire.subject;
  return 0;
end $$;
