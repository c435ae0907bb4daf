-- A connection keeps the plans of its statements, and those made while the tables were small and unknown to the planner
-- read them whole: a flood made every claim of its first minute scan all of it. These functions find rows by their keys
-- alone, whatever the statistics say.
alter function job_send(uuid[], integer) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_claim(uuid, uuid[], integer[]) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_progress(jsonb) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_finish(jsonb, integer) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_send_heads(text[]) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_recover(interval, integer) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_cancel(uuid) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;

-- Staging. Of one owner's jobs only so many are handed to the queue; the others are `queued` without an actor and have no
-- delivery. Workers take them straight from here, owner by owner in turn, so that a flood delays nobody else's jobs and
-- costs the queue's table nothing.
alter table job add column lane text not null default 'io';
alter table job add constraint job_lane_check check (lane in ('io', 'cpu', 'model'));
alter table job drop constraint job_mailbox_check;
alter table job add constraint job_mailbox_check check (status <> 'queued' or actor is not null or delivery = 0);

drop index job_waiting_idx;
create index job_waiting_idx on job (queue, coalesce(owner_id, 0), ordinal) where status in ('queued', 'sent');
drop index job_actor_mailbox_idx;
create index job_actor_mailbox_idx on job (actor, ordinal) where status = 'queued' and actor is not null;
create index job_staged_idx on job (queue, lane, coalesce(owner_id, 0), ordinal) where status = 'queued' and actor is null;

-- Adds jobs, in the caller's transaction. Each spec: id, name, queue, owner_id, actor, when_busy, payload,
-- max_tries, priority, run_at, request_id, together, lane, front (how many of an owner's jobs may wait in the queue before
-- others of this kind are staged; absent: any number). Answers, in order, the id each spec became: its own, or the id of
-- the live job of its actor that it joined.
create or replace function job_enqueue(specs jsonb) returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
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
  ), owner as (
    select queue, coalesce(owner_id, 0) as id, max(front) as front from given
    where run_at is null and front is not null group by 1, 2
  ), ahead as (
    select owner.queue, owner.id, waiting.n from owner cross join lateral (
      select count(*) as n from (
        select from job where job.queue = owner.queue and coalesce(job.owner_id, 0) = owner.id
          and job.status in ('queued', 'sent') limit owner.front) waits) waiting
  ), placed as (
    select given.*, ahead.n + row_number() over (partition by given.queue, given.owner_id, given.run_at is null order by given.n)
      > given.front as behind
    from given left join ahead on given.run_at is null and ahead.queue = given.queue and ahead.id = coalesce(given.owner_id, 0)
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
  where job.id = any(array(select (s ->> 'id')::uuid from jsonb_array_elements(specs) s)) and job.status = 'sent';
  perform job_send(send, coalesce((select max((s ->> 'together')::integer) from jsonb_array_elements(specs) s), 1));

  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'actor' is null;
end $$;

-- Takes staged jobs of a queue and lane for a lease, at most `most`: the same number for each of up to 100 owners
-- after `after_owner`, the oldest first. Answers what there is to run.
create function job_take(lease uuid, of_queue text, of_lane text, most integer, after_owner integer)
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
as $$
  with recursive line as (
    (select coalesce(job.owner_id, 0) as owner, 1 as n from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > after_owner
      order by coalesce(job.owner_id, 0) limit 1)
    union all
    select (select coalesce(job.owner_id, 0) from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > line.owner
      order by coalesce(job.owner_id, 0) limit 1), line.n + 1
    from line where line.owner is not null and line.n < 100
  ), share as (
    select owner, greatest(1, (most + count(*) over () - 1) / count(*) over ()) as part from line where owner is not null
  ), picked as (
    select staged.id from share cross join lateral (
      select job.id from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = share.owner
      order by job.ordinal limit share.part for update skip locked) staged
    limit most
  ), taken as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from picked where job.id = picked.id and job.status = 'queued'
    returning job.*
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select taken.id, taken.seq, 'status', jsonb_build_object('status', 'running', 'label', taken.label,
      'current', taken.progress_current, 'total', taken.progress_total) from taken
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id from taken order by ordinal
$$;

-- What runs under a lease, as JSON: id, attempt, and whether it was cancelled.
create function job_running(lease uuid) returns json language sql stable
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
as $$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.lease_id = lease and job.status = 'running'
$$;
