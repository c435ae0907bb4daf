-- While somebody holds a snapshot open, what a job leaves dead in the indexes of its past states stays there, and whoever
-- looks for the first that waits reads all of it: after a minute at full speed a seventh of the jobs got through. So
-- whoever knows where it was goes on from there, and looks at the whole only for a small part of its time.

-- What an owner has waiting is looked for among the last 10,000 jobs, beginning with the newest.
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

-- As job_take, of owners of whom it is known up to where their jobs have been taken.
-- Without bitmaps: where nothing is known of the table they are thought to be cheap, and sort all that waits.
create function job_take_known(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
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
    returning job.*
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select taken.id, taken.seq, 'status', jsonb_build_object('status', 'running', 'label', taken.label,
      'current', taken.progress_current, 'total', taken.progress_total) from taken
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id from taken order by ordinal
$$;

-- What of these runs under a lease, as `job_running` has it.
create function job_running_of(lease uuid, ids uuid[]) returns json language sql stable
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.id = any(ids) and job.lease_id = lease and job.status || '' = 'running'
$$;
