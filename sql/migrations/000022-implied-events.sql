-- Of what happens to a job its own row says most: that its first attempt began, and how it ended. Rows of their own for
-- these two were a fifth of what PostgreSQL did for a short job (40 us of CPU time, 32 without), and most of what it left.
-- So only what the row does not say is stored, and `job_event` is both together, for whoever reads.
alter table job_event rename to job_event_row;
alter table job_event_row rename constraint job_event_pkey to job_event_row_pkey;

-- A job begins without events and its first attempt is the first, so that one is event 1; an ended job says no more, so
-- its end is the last, and its row stays as it was then.
delete from job_event_row e using job
where job.id = e.job_id and e.kind = 'status'
  and ((e.seq = 1 and job.attempt > 0) or (e.seq = job.seq and job.finished_at is not null));

create view job_event as
  select id as job_id, 1 as seq, 'status' as kind,
    '{"label": "", "total": null, "status": "running", "current": null}'::jsonb as data, started_at as created_at
  from job where attempt > 0
  union all
  select job_id, seq, kind, data, created_at from job_event_row
  union all
  select id, seq, 'status', jsonb_build_object('status', status, 'label', label, 'current', progress_current,
    'total', progress_total), finished_at
  from job where finished_at is not null;

-- Their events go with jobs that are removed.
create or replace function job_gone() returns trigger language plpgsql as $$
begin
  delete from job_event_row e using gone where e.job_id = gone.id;
  return null;
end $$;

-- As before; an event is stored of every attempt but the first.
create or replace function job_claim(lease uuid, ids uuid[], deliveries integer[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
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
    insert into job_event_row (job_id, seq, kind, data)
    select claimed.id, claimed.seq, 'status', jsonb_build_object('status', 'running', 'label', claimed.label,
      'current', claimed.progress_current, 'total', claimed.progress_total) from claimed where claimed.attempt > 1
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id from claimed
$$;

-- As before, without an event, since a staged job has never run; and it answers ordinals, which were looked up once more.
drop function job_take(uuid, text, text, integer, integer);
drop function job_take_known(uuid, text, text, integer, integer, integer[], bigint[]);

create function job_take_known(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, ordinal bigint)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $$
  with line as (
    select known.owner, known.floor from unnest(owners, floors) as known(owner, floor)
    cross join lateral (
      select from job where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = known.owner and job.ordinal > known.floor
      order by job.ordinal limit 1) first
    where known.owner > after_owner
    order by known.owner limit 100
  ), share as (
    select owner, floor, greatest(1, (most + count(*) over () - 1) / count(*) over ()) as part from line
  ), picked as (
    select staged.id from share cross join lateral (
      select job.id from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = share.owner and job.ordinal > share.floor
      order by job.ordinal limit share.part for update skip locked) staged
    limit most
  ), taken as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from picked where job.id = picked.id and job.status || '' = 'queued'
    returning job.id, job.delivery, job.name, job.payload, job.attempt, job.tries, job.max_tries, job.owner_id, job.actor,
      job.request_id, job.ordinal
  )
  select * from taken order by ordinal
$$;

create function job_take(lease uuid, of_queue text, of_lane text, most integer, after_owner integer)
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, ordinal bigint)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $$
  with recursive line as (
    (select coalesce(job.owner_id, 0) as owner, job.ordinal as first, 1 as n from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > after_owner
      order by coalesce(job.owner_id, 0), job.ordinal limit 1)
    union all
    select next.owner, next.first, line.n + 1 from line cross join lateral (
      select coalesce(job.owner_id, 0) as owner, job.ordinal as first from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > line.owner
      order by coalesce(job.owner_id, 0), job.ordinal limit 1) next
    where line.n < 100
  )
  select taken.* from (select array_agg(owner) as owners, array_agg(first - 1) as floors from line) known
  cross join lateral job_take_known(lease, of_queue, of_lane, most, after_owner, known.owners, known.floors) taken
$$;

-- As before; an event is stored only of what goes back to the queue, of progress, and of what tasks emit.
create or replace function job_finish(entries jsonb, loss_limit integer)
returns setof uuid
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
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
    returning job.id, job.seq, job.status, job.actor, job.label, job.progress_current, job.progress_total
  ), event as (
    insert into job_event_row (job_id, seq, kind, data)
    select moved.id, moved.seq, 'status', jsonb_build_object('status', 'queued', 'label', moved.label,
      'current', moved.progress_current, 'total', moved.progress_total) from moved where moved.status = 'sent'
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

create or replace function job_cancel(job_id uuid)
returns boolean
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  found_actor text;
  cancelled_actor text;
begin
  select actor into found_actor from job where id = job_cancel.job_id;
  if not found then return false; end if;
  if found_actor is not null then
    perform pg_advisory_xact_lock(actor_lock_key(found_actor));
  end if;
  with moved as (
    update job set
      status = case when status = 'running' then status else 'cancelled' end,
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      finished_at = case when status = 'running' then null else now() end,
      delivery = delivery + case when status = 'running' then 0 else 1 end,
      seq = seq + case when status = 'running' then 0 else 1 end
    where id = job_cancel.job_id and status in ('queued', 'sent', 'running')
    returning status, actor
  )
  select actor into cancelled_actor from moved where status = 'cancelled';
  if cancelled_actor is not null then
    perform job_send(job_send_heads(array[cancelled_actor]));
  end if;
  return true;
end $$;

create or replace function job_progress(entries jsonb)
returns setof uuid
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
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
    insert into job_event_row (job_id, seq, kind, data)
    select moved.id, moved.base + e.ordinal, e.kind, e.data
    from moved cross join lateral unnest(moved.kinds, moved.list) with ordinality as e(kind, data, ordinal)
  )
  select id from moved
  union
  -- Said before, and the answer lost with its connection: the attempt is no less the running one.
  select job.id from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer)
  join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n <= job.reported
$$;

-- Ends attempts that are done, each with its result (JSON null: none), as `job_finish` does; answers the jobs whose end is
-- refused, since their attempt is not the running one. Most attempts end like this, and without a case for each column it
-- takes two thirds of the time.
create function job_done(ids uuid[], attempts integer[], results jsonb) returns setof uuid language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  ended uuid[];
  idle text[];
begin
  perform pg_advisory_xact_lock(key) from (
    select distinct actor_lock_key(job.actor) as key from job where job.id = any(ids) and job.actor is not null
    order by 1) locks;

  with moved as (
    update job set status = 'done', result = nullif(e.result, 'null'), finished_at = now(), lease_id = null,
      seq = job.seq + 1, delivery = job.delivery + 1
    from rows from (unnest(ids), unnest(attempts), jsonb_array_elements(results)) as e(id, attempt, result)
    where job.id = e.id and job.attempt = e.attempt and job.lease_id is not null
    returning job.id, job.actor
  )
  select coalesce(array_agg(id), '{}'), array_agg(actor) filter (where actor is not null) into ended, idle from moved;

  if idle is not null then
    perform job_send(job_send_heads(idle));
  end if;
  if cardinality(ended) < cardinality(ids) then
    return query select id from unnest(ids) id where id <> all(ended);
  end if;
end $$;
