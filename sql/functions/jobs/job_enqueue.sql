-- Adds jobs in the caller's transaction. Each spec: id, name, queue, owner_id, mailbox, mailbox_limit, when_busy,
-- settle (see the column), payload, max_tries, delay_ms (from now, by the database's
-- clock), request_id, trace_parent, joins. With `when_busy` = `join`, a spec joins the first job of its mailbox, running
-- before queued, that is not being cancelled and whose payload contains `joins`; if there is none, it waits.
-- `join_waiting` joins only queued ones: a running job may be past what the message is about, and a queued one is claimed
-- after this commits, under the lock of the mailbox. Returns the job id of each spec: its own, or that of the job that it
-- joined. With a `waiting_quota`, the setting, owners may not exceed their quota of waiting jobs (see `job_quota`).
--
-- A job has a delivery, or waits behind one that has: in a limited mailbox behind the jobs that fill it, each of which
-- sends the next delivery when it ends; in any other behind one that was due when added, from which a claim continues
-- to it. Jobs due later have deliveries of their own, so that nothing need scan all others that are not due yet: without a
-- limit with an upper bound; in a limited mailbox they are `later` until a delivery is claimed after their time.
create or replace function job_enqueue(specs jsonb, waiting_quota bigint default null) returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  spec record;
  missing text;
  joins uuid;
  room integer;
  send uuid[];
  later uuid[];
  last bigint;
  behind uuid[];
  queues text[];
begin
  select s ->> 'settle' into missing from jsonb_array_elements(specs) s
  where s ->> 'settle' is not null and to_regprocedure(format('%I(job)', s ->> 'settle')) is null limit 1;
  if found then
    raise exception 'There is no function %(job) to settle a job', missing;
  end if;
  perform mailbox_lock(array(
    select s ->> 'mailbox' from jsonb_array_elements(specs) s where s ->> 'mailbox_limit' is not null));

  with added as (
    insert into job (id, name, queue, owner_id, mailbox, settle, payload, status, max_tries, run_at, request_id, trace_parent)
    select s.id, s.name, s.queue, s.owner_id, s.mailbox, s.settle, s.payload, 'queued', s.max_tries,
      now() + make_interval(secs => coalesce(s.delay_ms, 0) / 1000), s.request_id, s.trace_parent
    from rows from (jsonb_to_recordset(specs) as (id uuid, name text, queue text, owner_id integer, mailbox text,
      mailbox_limit integer, settle text, payload jsonb, max_tries integer, delay_ms float8, request_id text, trace_parent text))
      with ordinality as s(id, name, queue, owner_id, mailbox, mailbox_limit, settle, payload, max_tries, delay_ms, request_id,
        trace_parent, n)
    where s.mailbox_limit is null order by s.n
    returning id, queue, mailbox, run_at, ordinal
  )
  select coalesce(array_agg(id) filter (where run_at <= now()), '{}'), coalesce(array_agg(id) filter (where run_at > now()), '{}'),
    (select max(ordinal) from added), array(select queue from added)
  into send, later, last, queues from (
    select distinct on (mailbox, run_at) id, run_at from added order by mailbox, run_at, ordinal) firsts;
  behind := job_behind(send);
  if cardinality(behind) > 0 then
    -- A claim that takes the jobs they wait behind holds this lock until its commit; then nothing is ahead of them.
    perform pg_advisory_xact_lock_shared(key) from (
      select distinct mailbox_lock_key(mailbox) as key from job where id = any(behind) order by 1) locks;
    behind := job_behind(behind);
    send := array(select unnest(send) except select unnest(behind));
  end if;

  for spec in
    select s.*, e.ordinality as n
    from jsonb_array_elements(specs) with ordinality e cross join lateral jsonb_to_record(e.value) as s(id uuid, name text,
      queue text, owner_id integer, mailbox text, mailbox_limit integer, when_busy text, settle text, payload jsonb, max_tries integer,
      delay_ms float8, request_id text, trace_parent text, joins jsonb)
    where s.mailbox_limit is not null order by e.ordinality
  loop
    if spec.when_busy in ('join', 'join_waiting') then
      select id into joins from (
        select id, ordinal, 0 as place, payload, cancel_requested_at from job
        where mailbox = spec.mailbox and lease_id is not null and mailbox_limit is not null and spec.when_busy = 'join'
        union all
        select id, ordinal, 1, payload, cancel_requested_at from job where mailbox = spec.mailbox and status = 'queued') live
      where cancel_requested_at is null and (spec.joins is null or payload @> spec.joins) order by place, ordinal limit 1;
      if found then
        spec_ordinal := spec.n; job_id := joins; joined := true;
        return next;
        continue;
      end if;
    end if;
    room := spec.mailbox_limit
      - (select count(*) from job where mailbox = spec.mailbox and lease_id is not null and mailbox_limit is not null)
      - (select count(*) from (
          -- Not now(): what has committed since this began is due, too.
          select from job where mailbox = spec.mailbox and status = 'queued' and not later
            and (mailbox_limit = 1 and attempt > 0 or run_at <= clock_timestamp())
          limit spec.mailbox_limit) waiting);
    insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, later, settle, payload, status, max_tries, run_at, request_id,
      trace_parent)
    values (spec.id, spec.name, spec.queue, spec.owner_id, spec.mailbox, spec.mailbox_limit, coalesce(spec.delay_ms > 0, false), spec.settle,
      spec.payload, 'queued', spec.max_tries, now() + make_interval(secs => coalesce(spec.delay_ms, 0) / 1000), spec.request_id, spec.trace_parent);
    queues := queues || spec.queue;
    if room > 0 or spec.delay_ms > 0 then
      send := send || spec.id;
    end if;
    spec_ordinal := spec.n; job_id := spec.id; joined := false;
    return next;
  end loop;

  perform job_counted(queues, 1, 0);
  if waiting_quota is not null then
    perform job_quota(array(select (s ->> 'owner_id')::integer from jsonb_array_elements(specs) s), waiting_quota);
  end if;
  perform job_send(send);
  perform job_send(later, array_fill(last, array[cardinality(later)]));
  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'mailbox_limit' is null;
end $$;
