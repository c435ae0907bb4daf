-- Stores progress and other events of running attempts, in the given order. Each entry: id, attempt, n, kind, data. `n`
-- counts from 1 within the attempt, so that a repeated call stores nothing twice. An event of kind `status` updates the
-- row's label and progress. Returns the ids whose attempt is still current, with the seq of the last event before these; null
-- for entries that were stored before. Writes nothing for any other id, whose attempt has been taken over.
create or replace function job_progress(entries jsonb)
returns table (id uuid, after integer)
language sql
as $$
  with reports as (
    select job.id, max(e.attempt) as attempt, max(e.n) as n, count(*)::integer as events,
      array_agg(e.kind order by e.n) as kinds, array_agg(e.data order by e.n) as list,
      (array_agg(e.data order by e.n desc) filter (where e.kind = 'status'))[1] as data
    from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer, kind text, data jsonb)
    join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n > job.reported
    group by job.id
  ), moved as (
    update job set seq = job.seq + reports.events, reported = reports.n,
      label = case when reports.data is null then job.label else coalesce(reports.data ->> 'label', '') end,
      progress_current = case when reports.data is null then job.progress_current else (reports.data ->> 'current')::integer end,
      progress_total = case when reports.data is null then job.progress_total else (reports.data ->> 'total')::integer end
    from reports
    where job.id = reports.id and job.attempt = reports.attempt and job.lease_id is not null and reports.n > job.reported
    returning job.id, job.seq - reports.events as base, reports.kinds, reports.list
  ), event as (
    insert into job_event_row (job_id, seq, kind, data)
    select moved.id, moved.base + e.ordinal, e.kind, coalesce(e.data, 'null')
    from moved cross join lateral unnest(moved.kinds, moved.list) with ordinality as e(kind, data, ordinal)
  )
  select id, base from moved
  union all
  -- An earlier call stored these entries but lost its response with its connection. The attempt is still current. The
  -- record makes the commit wait for the synchronous standby, which then also has the commit of the earlier call.
  select repeated.id, null from (
    select distinct job.id from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer)
    join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n <= job.reported offset 0) repeated
  where repeated.id not in (select id from moved) and pg_logical_emit_message(true, 'millrace.repeated', '') is not null
$$;
