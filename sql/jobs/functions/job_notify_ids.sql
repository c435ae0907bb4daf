-- Notifies the streams of changed jobs by their ids alone, see job_notify. Subscribers read the jobs after the commit.
create or replace function job_notify_ids(ids uuid[]) returns void language sql as $$
  select pg_notify('job_events', string_agg(id::text, E'\n'))
  from unnest(ids) with ordinality as changed (id, n) group by (n - 1) / 200;
$$;
