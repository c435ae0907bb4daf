-- Adds jobs, in the caller's transaction. Each spec: id, name, queue, owner_id, actor, when_busy, settle (of jobs with an actor:
-- see the column), payload, max_tries, delay_ms (from now on, by the database's clock), request_id, together, lane, front (how
-- many of an owner's jobs may wait in the queue before others of this kind are staged; absent: any number), joins (what the
-- payload of the job that it joins holds: where the live one does not, or is being cancelled, the first one in the mailbox
-- that does is joined, and else the spec waits behind them). What an owner has waiting is looked for among the last 10,000
-- jobs, beginning with the newest: while somebody holds a snapshot open, what jobs leave dead in the index of the waiting stays
-- there. Answers, in order, the id each spec became: its own, or the id of the live job of its actor that it joined.
create or replace function job_enqueue(specs jsonb) returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  spec record;
  live uuid;
  joins uuid;
  dying boolean;
  send uuid[] := '{}';
begin
  -- Always in key order, here and in job_finish, so that two transactions never wait for each other.
  perform pg_advisory_xact_lock(key) from (
    select distinct actor_lock_key(s ->> 'actor') as key from jsonb_array_elements(specs) s
    where s ->> 'actor' is not null order by 1) locks;

  with given as (
    select * from rows from (jsonb_to_recordset(specs) as (id uuid, name text, queue text, owner_id integer, actor text,
      payload jsonb, max_tries integer, delay_ms float8, request_id text, lane text, front integer))
      with ordinality as s(id, name, queue, owner_id, actor, payload, max_tries, delay_ms, request_id, lane, front, n)
    where s.actor is null
  ), numbered as (
    select given.*, row_number() over (partition by queue, coalesce(owner_id, 0), delay_ms is null, front is null order by n) as nth
    from given
  ), counted as (
    -- What an owner has waiting is counted once, for the first of its jobs.
    select numbered.*, case when nth = 1 and delay_ms is null and front is not null then (
      select count(*) from (
        select from job where job.queue = numbered.queue and coalesce(job.owner_id, 0) = coalesce(numbered.owner_id, 0)
          and job.status in ('queued', 'sent') and job.ordinal > (select last_value - 10000 from job_ordinal_seq)
        order by job.ordinal desc limit numbered.front) waits) end as waiting
    from numbered
  ), placed as (
    select counted.*, nth + max(waiting) over (partition by queue, coalesce(owner_id, 0), delay_ms is null, front is null)
      > front as behind
    from counted
  )
  insert into job (id, name, queue, owner_id, payload, status, max_tries, delivery, run_at, request_id, lane)
  select p.id, p.name, p.queue, p.owner_id, p.payload, case when behind then 'queued' else 'sent' end, p.max_tries,
    case when behind then 0 else 1 end, now() + make_interval(secs => coalesce(p.delay_ms, 0) / 1000), p.request_id, coalesce(p.lane, 'io')
  from placed p order by p.n;

  for spec in
    select e.value as s, e.ordinality as n from jsonb_array_elements(specs) with ordinality e
    where e.value ->> 'actor' is not null order by e.ordinality
  loop
    select id, cancel_requested_at is not null into live, dying
    from job where actor = spec.s ->> 'actor' and status in ('sent', 'running');
    if live is not null and spec.s ->> 'when_busy' = 'join' then
      select id into joins from job
      where id = live and not dying and (spec.s -> 'joins' is null or payload @> (spec.s -> 'joins'));
      if not found and spec.s -> 'joins' is not null then
        select id into joins from job
        where actor = spec.s ->> 'actor' and status = 'queued' and payload @> (spec.s -> 'joins') order by ordinal limit 1;
      end if;
      if found then
        spec_ordinal := spec.n; job_id := joins; joined := true;
        return next;
        continue;
      end if;
    end if;
    if spec.s ->> 'settle' is not null and to_regprocedure(format('%I(job)', spec.s ->> 'settle')) is null then
      raise exception 'There is no function %(job) to settle a job of %', spec.s ->> 'settle', spec.s ->> 'name';
    end if;
    insert into job (id, name, queue, owner_id, actor, settle, payload, status, max_tries, delivery, run_at, request_id, lane)
    values ((spec.s ->> 'id')::uuid, spec.s ->> 'name', spec.s ->> 'queue', (spec.s ->> 'owner_id')::integer,
      spec.s ->> 'actor', spec.s ->> 'settle', spec.s -> 'payload', case when live is null then 'sent' else 'queued' end,
      (spec.s ->> 'max_tries')::integer, case when live is null then 1 else 0 end,
      now() + make_interval(secs => coalesce((spec.s ->> 'delay_ms')::float8, 0) / 1000), spec.s ->> 'request_id', coalesce(spec.s ->> 'lane', 'io'));
    spec_ordinal := spec.n; job_id := (spec.s ->> 'id')::uuid; joined := false;
    return next;
  end loop;

  select coalesce(array_agg(id), '{}') into send from job
  where job.id = any(array(select (s ->> 'id')::uuid from jsonb_array_elements(specs) s)) and job.status || '' = 'sent';
  perform job_send(send, coalesce((select max((s ->> 'together')::integer) from jsonb_array_elements(specs) s), 1));

  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'actor' is null;
end $$;
