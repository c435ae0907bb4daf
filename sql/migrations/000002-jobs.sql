-- The job ledger. A row of `job` is the truth about a job; graphile-worker's table holds only the deliveries
-- that may start one. A delivery that does not carry the row's current `delivery` number is stale and starts nothing.
--
-- status:  queued  waits in its actor's mailbox
--          sent    has a delivery in the queue (clients see `queued`)
--          running held by the lease `lease_id`; `attempt` fences every write of the one that runs it
--          done, failed, cancelled   written once

create table worker_lease (
  id uuid not null,
  name text not null,
  queues text[] not null,
  pool_ids text[] not null default '{}',
  threads integer not null default 0,
  started_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint worker_lease_pkey primary key (id)
);

create table job (
  id uuid not null,
  ordinal bigint generated always as identity,
  name text not null,
  queue text not null,
  owner_id integer,
  actor text,
  payload jsonb not null,
  status text not null,
  label text not null default '',
  progress_current integer,
  progress_total integer,
  seq integer not null default 0,
  attempt integer not null default 0,
  tries integer not null default 0,
  losses integer not null default 0,
  reported integer not null default 0,
  max_tries integer not null,
  delivery integer not null default 0,
  lease_id uuid,
  priority smallint not null default 0,
  run_at timestamptz not null default now(),
  cancel_requested_at timestamptz,
  result jsonb,
  error_code text,
  error_detail text,
  request_id text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  constraint job_pkey primary key (id),
  constraint job_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint job_status_check check (status in ('queued', 'sent', 'running', 'done', 'failed', 'cancelled')),
  constraint job_mailbox_check check (status <> 'queued' or actor is not null),
  constraint job_lease_check check ((status = 'running') = (lease_id is not null)),
  constraint job_finished_check check ((status in ('done', 'failed', 'cancelled')) = (finished_at is not null)),
  constraint job_error_check check ((status = 'failed') = (error_code is not null)),
  constraint job_max_tries_check check (max_tries between 1 and 100)
) with (fillfactor = 85);

-- An actor handles one message at a time.
create unique index job_actor_live_key on job (actor) where actor is not null and status in ('sent', 'running');
create index job_actor_mailbox_idx on job (actor, ordinal) where status = 'queued';
create index job_owner_id_idx on job (owner_id, id) where owner_id is not null;
create index job_waiting_idx on job (queue, id) where status in ('queued', 'sent');
create index job_running_idx on job (lease_id) where status = 'running';
create index job_finished_at_idx on job (finished_at) where finished_at is not null;

-- What streams replay. No foreign key: it would lock and rewrite the hot job row for every event; a trigger removes
-- the events of a job with the job.
create table job_event (
  job_id uuid not null,
  seq integer not null,
  kind text not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  constraint job_event_pkey primary key (job_id, seq)
);

create function job_gone() returns trigger language plpgsql as $$
begin
  delete from job_event using gone where job_event.job_id = gone.id;
  return null;
end $$;
-- By statement: housekeeping removes a thousand at a time, an account takes all of its own along.
create trigger job_gone after delete on job referencing old table as gone for each statement execute function job_gone();

create function actor_lock_key(actor text) returns bigint
  language sql immutable parallel safe
  return hashtextextended('millrace.actor:' || actor, 0);

-- Puts deliveries for these `sent` jobs into the queue, in one statement and with one NOTIFY: one each, or one for up
-- to `together` jobs of a task without actors. A delivery for several carries the number of each.
create function job_send(ids uuid[], together integer default 1) returns void language plpgsql as $$
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
      from job where job.id = any(ids) and job.status = 'sent') sent
    group by name, run_at, priority, part) deliveries;
end $$;

-- Adds jobs, in the caller's transaction. Each spec: id, name, queue, owner_id, actor, when_busy, payload,
-- max_tries, priority, run_at, request_id, together. Answers, in order, the id each spec became: its own, or the id of
-- the live job of its actor that it joined.
create function job_enqueue(specs jsonb) returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql as $$
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

  insert into job (id, name, queue, owner_id, payload, status, max_tries, delivery, priority, run_at, request_id)
  select s.id, s.name, s.queue, s.owner_id, s.payload, 'sent', s.max_tries, 1, s.priority, coalesce(s.run_at, now()), s.request_id
  from jsonb_to_recordset(specs) as s(id uuid, name text, queue text, owner_id integer, actor text, payload jsonb,
    max_tries integer, priority smallint, run_at timestamptz, request_id text)
  where s.actor is null;

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
    insert into job (id, name, queue, owner_id, actor, payload, status, max_tries, delivery, priority, run_at, request_id)
    values ((spec.s ->> 'id')::uuid, spec.s ->> 'name', spec.s ->> 'queue', (spec.s ->> 'owner_id')::integer,
      spec.s ->> 'actor', spec.s -> 'payload', case when live is null then 'sent' else 'queued' end,
      (spec.s ->> 'max_tries')::integer, case when live is null then 1 else 0 end, (spec.s ->> 'priority')::smallint,
      coalesce((spec.s ->> 'run_at')::timestamptz, now()), spec.s ->> 'request_id');
    spec_ordinal := spec.n; job_id := (spec.s ->> 'id')::uuid; joined := false;
    return next;
  end loop;

  select coalesce(array_agg((s ->> 'id')::uuid), '{}') into send from jsonb_array_elements(specs) s;
  perform job_send(send, coalesce((select max((s ->> 'together')::integer) from jsonb_array_elements(specs) s), 1));

  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'actor' is null;
end $$;

-- Takes jobs for a lease: only those whose delivery is the current one. Answers what there is to run. A claim whose
-- answer was lost with its connection is repeated by the same lease and gets its jobs, as a new attempt.
create function job_claim(lease uuid, ids uuid[], deliveries integer[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql as $$
  with claimed as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0,
      tries = job.tries + case when job.status = 'sent' then 1 else 0 end,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from unnest(ids, deliveries) as wanted(id, delivery)
    where job.id = wanted.id and job.delivery = wanted.delivery
      and (job.status = 'sent' or (job.status = 'running' and job.lease_id = lease))
    returning job.*
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select claimed.id, claimed.seq, 'status', jsonb_build_object('status', 'running', 'label', claimed.label,
      'current', claimed.progress_current, 'total', claimed.progress_total) from claimed
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id from claimed
$$;

-- Stores progress and other events of running attempts, in the order given. Each entry: id, attempt, n (counting from
-- 1 within the attempt, so that a repeated call stores nothing twice), kind, data; an event of kind `status` moves
-- the row's label and progress. Answers the ids whose attempt is still the
-- running one; for any other id nothing was written: that attempt has been taken over.
create function job_progress(entries jsonb) returns setof uuid language sql as $$
  with entry as (
    select job.id, e.attempt, e.n, e.kind, e.data, row_number() over (partition by job.id order by e.n) as ordinal
    from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer, kind text, data jsonb)
    join job on job.id = e.id and job.attempt = e.attempt and job.status = 'running' and e.n > job.reported
  ), latest as (
    select id, max(attempt) as attempt, max(n) as n, count(*)::integer as events,
      (array_agg(data order by n desc) filter (where kind = 'status'))[1] as data
    from entry group by id
  ), moved as (
    update job set seq = job.seq + latest.events, losses = 0, reported = latest.n,
      label = case when latest.data is null then job.label else coalesce(latest.data ->> 'label', '') end,
      progress_current = case when latest.data is null then job.progress_current else (latest.data ->> 'current')::integer end,
      progress_total = case when latest.data is null then job.progress_total else (latest.data ->> 'total')::integer end
    from latest
    where job.id = latest.id and job.attempt = latest.attempt and job.status = 'running' and latest.n > job.reported
    returning job.id, job.seq - latest.events as base
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select moved.id, moved.base + entry.ordinal, entry.kind, entry.data from moved join entry on entry.id = moved.id
  )
  select id from moved
  union
  -- Said before, and the answer lost with its connection: the attempt is no less the running one.
  select job.id from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer)
  join job on job.id = e.id and job.attempt = e.attempt and job.status = 'running' and e.n <= job.reported
$$;

-- Ends attempts. Each entry: id, attempt, outcome, result, code, detail, delay_ms. Outcomes: done, failed,
-- cancelled; retry (again after delay_ms, as a failed try); release (again at once, the try not counted);
-- lost (again at once unless `loss_limit` attempts in a row were cut short without any progress).
-- Sends the next message of every actor that became idle. Answers the ids that were ended by this call.
create function job_finish(entries jsonb, loss_limit integer) returns setof uuid
language plpgsql as $$
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
    from entry e where job.id = e.id and job.attempt = e.attempt and job.status = 'running'
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

-- Marks the oldest waiting message of each idle actor as sent; the caller holds the actors' locks and sends them.
create function job_send_heads(actors text[]) returns uuid[] language sql as $$
  with head as (
    select h.id from unnest(actors) as a(actor)
    cross join lateral (
      select id from job where job.actor = a.actor and status = 'queued' order by ordinal limit 1) h
    where not exists (select from job live where live.actor = a.actor and live.status in ('sent', 'running'))
  ), sent as (
    update job set status = 'sent', delivery = delivery + 1 from head where job.id = head.id returning job.id
  )
  select coalesce(array_agg(id), '{}') from sent
$$;

-- Takes over what the workers whose lease has run out were doing. Right after a restart of PostgreSQL every lease
-- looks expired though its worker lives, so nobody is judged until the server has been up for `grace`.
create function job_recover(grace interval, loss_limit integer) returns setof uuid
language plpgsql as $$
#variable_conflict use_column
declare
  dead_pools text[];
  lost jsonb;
begin
  if now() - pg_postmaster_start_time() < grace then return; end if;
  if not exists (select from worker_lease where expires_at < now())
     and not exists (select from job where status = 'running'
       and not exists (select from worker_lease where worker_lease.id = job.lease_id)) then
    return;
  end if;
  with dead as (delete from worker_lease where expires_at < now() returning pool_ids)
  select coalesce(array_agg(pool), '{}') into dead_pools from dead, unnest(pool_ids) pool;
  if cardinality(dead_pools) > 0 then
    perform graphile_worker.force_unlock_workers(dead_pools);
  end if;
  select jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt, 'outcome', 'lost')) into lost
  from job where status = 'running' and not exists (select from worker_lease where worker_lease.id = job.lease_id);
  if lost is not null then
    return query select job_finish(lost, loss_limit);
  end if;
end $$;

-- Cancels: a waiting job ends at once, a running one is marked and its worker told by the next heartbeat.
-- Answers false when the job is missing; an ended one stays as it is.
create function job_cancel(job_id uuid) returns boolean language plpgsql as $$
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
    returning *
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select id, seq, 'status', jsonb_build_object('status', 'cancelled', 'label', label,
      'current', progress_current, 'total', progress_total) from moved where status = 'cancelled'
  )
  select actor into cancelled_actor from moved where status = 'cancelled';
  if cancelled_actor is not null then
    perform job_send(job_send_heads(array[cancelled_actor]));
  end if;
  return true;
end $$;
