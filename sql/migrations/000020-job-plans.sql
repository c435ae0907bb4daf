-- Functions that find rows by their keys must not be talked into a partial index: "is running" made the planner read all
-- that runs for each entry of a batch, since the tables' statistics are mostly of moments when nothing does (47 ms for 500
-- ends, 4 ms now). So the state of a row that was found by its id is asked for in words that no index has: a lease for
-- running (job_lease_check), none for waiting, and `status || ''` where neither will do.
-- A join of two lists by hand was as bad (95 ms to add 1,000 jobs, 20 now): they are numbered and counted in one pass.
-- And with plans that hang on no value there is nothing to plan anew: half the time of a call for one job was planning,
-- that of graphile-worker's functions and of the triggers included.
alter function job_send_heads(text[]) set plan_cache_mode = force_generic_plan;
alter function job_recover(interval, integer) set plan_cache_mode = force_generic_plan;
alter function job_running(uuid) set plan_cache_mode = force_generic_plan;
alter function job_cancel(uuid) set plan_cache_mode = force_generic_plan;

create or replace function job_send(ids uuid[], together integer default 1) returns void language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  if cardinality(ids) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((name, payload, null, run_at, 32000, null, priority, null)::graphile_worker.job_spec
    order by first))
  from (
    select name, run_at, priority, min(ordinal) as first, case when count(*) = 1
      then json_build_object('id', (array_agg(id))[1], 'delivery', min(delivery))
      else json_build_object('jobs', json_agg(json_build_array(id, delivery) order by ordinal)) end as payload
    from (
      select job.id, job.name, job.run_at, job.priority, job.ordinal, job.delivery, case when job.actor is null
        then (row_number() over (partition by job.name, job.run_at, job.priority, job.actor order by job.ordinal) - 1) / together
        else -job.ordinal end as part
      from job where job.id = any(ids) and job.status || '' = 'sent') sent
    group by name, run_at, priority, part) deliveries;
end $$;

-- What an owner has waiting is looked for among the last 10,000 jobs, beginning with the newest (000021 says why).
create or replace function job_enqueue(specs jsonb) returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  spec record;
  live uuid;
  dying boolean;
  send uuid[] := '{}';
begin
  -- Always in key order, here and in job_finish, so that two transactions never wait for each other.
  perform pg_advisory_xact_lock(key) from (
    select distinct actor_lock_key(s ->> 'actor') as key from jsonb_array_elements(specs) s
    where s ->> 'actor' is not null order by 1) locks;

  with given as (
    select * from rows from (jsonb_to_recordset(specs) as (id uuid, name text, queue text, owner_id integer, actor text,
      payload jsonb, max_tries integer, priority smallint, run_at timestamptz, request_id text, lane text, front integer))
      with ordinality as s(id, name, queue, owner_id, actor, payload, max_tries, priority, run_at, request_id, lane, front, n)
    where s.actor is null
  ), numbered as (
    select given.*, row_number() over (partition by queue, coalesce(owner_id, 0), run_at is null, front is null order by n) as nth
    from given
  ), counted as (
    -- What an owner has waiting is counted once, for the first of its jobs.
    select numbered.*, case when nth = 1 and run_at is null and front is not null then (
      select count(*) from (
        select from job where job.queue = numbered.queue and coalesce(job.owner_id, 0) = coalesce(numbered.owner_id, 0)
          and job.status in ('queued', 'sent') and job.ordinal > (select last_value - 10000 from job_ordinal_seq)
        order by job.ordinal desc limit numbered.front) waits) end as waiting
    from numbered
  ), placed as (
    select counted.*, nth + max(waiting) over (partition by queue, coalesce(owner_id, 0), run_at is null, front is null)
      > front as behind
    from counted
  )
  insert into job (id, name, queue, owner_id, payload, status, max_tries, delivery, priority, run_at, request_id, lane)
  select p.id, p.name, p.queue, p.owner_id, p.payload, case when behind then 'queued' else 'sent' end, p.max_tries,
    case when behind then 0 else 1 end, p.priority, coalesce(p.run_at, now()), p.request_id, coalesce(p.lane, 'io')
  from placed p order by p.n;

  for spec in
    select e.value as s, e.ordinality as n from jsonb_array_elements(specs) with ordinality e
    where e.value ->> 'actor' is not null order by e.ordinality
  loop
    select id, cancel_requested_at is not null into live, dying
    from job where actor = spec.s ->> 'actor' and status in ('sent', 'running');
    if live is not null and not dying and spec.s ->> 'when_busy' = 'join' then
      spec_ordinal := spec.n; job_id := live; joined := true;
      return next;
      continue;
    end if;
    insert into job (id, name, queue, owner_id, actor, payload, status, max_tries, delivery, priority, run_at, request_id, lane)
    values ((spec.s ->> 'id')::uuid, spec.s ->> 'name', spec.s ->> 'queue', (spec.s ->> 'owner_id')::integer,
      spec.s ->> 'actor', spec.s -> 'payload', case when live is null then 'sent' else 'queued' end,
      (spec.s ->> 'max_tries')::integer, case when live is null then 1 else 0 end, (spec.s ->> 'priority')::smallint,
      coalesce((spec.s ->> 'run_at')::timestamptz, now()), spec.s ->> 'request_id', coalesce(spec.s ->> 'lane', 'io'));
    spec_ordinal := spec.n; job_id := (spec.s ->> 'id')::uuid; joined := false;
    return next;
  end loop;

  select coalesce(array_agg(id), '{}') into send from job
  where job.id = any(array(select (s ->> 'id')::uuid from jsonb_array_elements(specs) s)) and job.status || '' = 'sent';
  perform job_send(send, coalesce((select max((s ->> 'together')::integer) from jsonb_array_elements(specs) s), 1));

  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'actor' is null;
end $$;

create or replace function job_claim(lease uuid, ids uuid[], deliveries integer[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
  with claimed as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0,
      tries = job.tries + case when job.status = 'sent' then 1 else 0 end,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from unnest(ids, deliveries) as wanted(id, delivery)
    where job.id = wanted.id and job.delivery = wanted.delivery
      and (job.status || '' = 'sent' or (job.status || '' = 'running' and job.lease_id = lease))
    returning job.*
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select claimed.id, claimed.seq, 'status', jsonb_build_object('status', 'running', 'label', claimed.label,
      'current', claimed.progress_current, 'total', claimed.progress_total) from claimed
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id from claimed
$$;

create or replace function job_progress(entries jsonb) returns setof uuid language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
  with said as (
    select job.id, max(e.attempt) as attempt, max(e.n) as n, count(*)::integer as events,
      array_agg(e.kind order by e.n) as kinds, array_agg(e.data order by e.n) as list,
      (array_agg(e.data order by e.n desc) filter (where e.kind = 'status'))[1] as data
    from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer, kind text, data jsonb)
    join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n > job.reported
    group by job.id
  ), moved as (
    update job set seq = job.seq + said.events, losses = 0, reported = said.n,
      label = case when said.data is null then job.label else coalesce(said.data ->> 'label', '') end,
      progress_current = case when said.data is null then job.progress_current else (said.data ->> 'current')::integer end,
      progress_total = case when said.data is null then job.progress_total else (said.data ->> 'total')::integer end
    from said
    where job.id = said.id and job.attempt = said.attempt and job.lease_id is not null and said.n > job.reported
    returning job.id, job.seq - said.events as base, said.kinds, said.list
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select moved.id, moved.base + e.ordinal, e.kind, e.data
    from moved cross join lateral unnest(moved.kinds, moved.list) with ordinality as e(kind, data, ordinal)
  )
  select id from moved
  union
  -- Said before, and the answer lost with its connection: the attempt is no less the running one.
  select job.id from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer)
  join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n <= job.reported
$$;

create or replace function job_finish(entries jsonb, loss_limit integer) returns setof uuid
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  ended uuid[];
  resend uuid[];
  idle text[];
begin
  perform pg_advisory_xact_lock(key) from (
    select distinct actor_lock_key(job.actor) as key
    from jsonb_to_recordset(entries) as e(id uuid) join job on job.id = e.id
    where job.actor is not null order by 1) locks;

  with entry as (
    select * from jsonb_to_recordset(entries)
      as e(id uuid, attempt integer, outcome text, result jsonb, code text, detail text, delay_ms integer)
  ), moved as (
    -- Each expression sees the row as it is under its lock: a cancel request that commits while this waits counts.
    update job set
      status = case
        when e.outcome not in ('retry', 'release', 'lost') then e.outcome
        when job.cancel_requested_at is not null then 'cancelled'
        when e.outcome = 'lost' and job.losses + 1 >= loss_limit then 'failed'
        else 'sent' end,
      lease_id = null, seq = job.seq + 1, delivery = job.delivery + 1,
      result = case when e.outcome = 'done' then e.result end,
      error_code = case
        when e.outcome = 'failed' then coalesce(e.code, 'internal')
        when e.outcome = 'lost' and job.cancel_requested_at is null and job.losses + 1 >= loss_limit then 'job.lost' end,
      error_detail = case
        when e.outcome = 'failed' then e.detail
        when e.outcome = 'lost' and job.cancel_requested_at is null and job.losses + 1 >= loss_limit
          then 'The job was given up after ' || (job.losses + 1) || ' attempts were cut short' end,
      finished_at = case
        when e.outcome in ('retry', 'release', 'lost') and job.cancel_requested_at is null
          and not (e.outcome = 'lost' and job.losses + 1 >= loss_limit) then null
        else now() end,
      tries = case when e.outcome in ('release', 'lost') then job.tries - 1 else job.tries end,
      losses = case when e.outcome = 'lost' then job.losses + 1 else job.losses end,
      run_at = case when e.outcome in ('retry', 'release', 'lost')
        then now() + make_interval(secs => coalesce(e.delay_ms, 0) / 1000.0) else job.run_at end
    from entry e where job.id = e.id and job.attempt = e.attempt and job.lease_id is not null
    returning job.*
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select moved.id, moved.seq, 'status', jsonb_build_object(
      'status', case when moved.status = 'sent' then 'queued' else moved.status end, 'label', moved.label,
      'current', moved.progress_current, 'total', moved.progress_total) from moved
  )
  select coalesce(array_agg(id), '{}'),
    coalesce(array_agg(id) filter (where status = 'sent'), '{}'),
    coalesce(array_agg(actor) filter (where status <> 'sent' and actor is not null), '{}')
  into ended, resend, idle from moved;

  if cardinality(idle) > 0 then
    resend := resend || job_send_heads(idle);
  end if;
  perform job_send(resend);
  return query select unnest(ended);
end $$;
