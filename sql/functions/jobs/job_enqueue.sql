-- Adds jobs in the caller's transaction. Each spec: id, name, queue, owner_id, mailbox, mailbox_limit, when_busy,
-- settle (see the column), payload, max_tries, delay_ms (from now, by the database's clock), request_id, trace_parent,
-- joins.
--
-- A spec with `when_busy` = `join` joins a job of its mailbox whose payload contains `joins`: the first running one,
-- else the first queued one. It skips jobs that are being cancelled. If it finds none, the spec is added and waits.
-- `join_waiting` joins only queued jobs, because a running job may be past the point at which it would see the change.
-- A joined queued job is claimed only after this commits, under the lock of the mailbox.
--
-- Returns the job id of each spec: its own, or that of the job that it joined. `waiting_quota` is the default quota of
-- waiting jobs per owner (see `job_quota`). Null skips the check.
--
-- Each job has a delivery, or waits behind a job that has one. In a limited mailbox it waits behind the jobs that fill
-- it, each of which sends the next delivery when it ends. In any other mailbox it waits behind a job that was due when
-- added, from which a claim continues to it.
--
-- Scheduled jobs have their own deliveries, so no scan has to cover all jobs that are not due yet. Without a limit,
-- these deliveries have an upper bound. In a limited mailbox, such jobs stay `later` until a delivery is claimed after
-- their due time.
create or replace function job_enqueue(specs jsonb, waiting_quota bigint default null)
returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  spec record;
  missing_function text;
  joins uuid;
  free_slots integer;
  to_deliver uuid[];
  scheduled uuid[];
  last_ordinal bigint;
  blocked uuid[];
  queues text[];
begin
  select s ->> 'settle' into missing_function from jsonb_array_elements(specs) s
  where s ->> 'settle' is not null and to_regprocedure(format('%I(job)', s ->> 'settle')) is null limit 1;
  if found then
    raise exception 'There is no function %(job) to settle a job', missing_function;
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
  into to_deliver, scheduled, last_ordinal, queues from (
    select distinct on (mailbox, run_at) id, run_at from added order by mailbox, run_at, ordinal) firsts;
  blocked := job_blocked_ids(to_deliver);
  if cardinality(blocked) > 0 then
    -- A claim of the older jobs holds this lock until its commit. After that, the older jobs no longer block these.
    perform pg_advisory_xact_lock_shared(key) from (
      select distinct mailbox_lock_key(mailbox) as key from job where id = any(blocked) order by 1) locks;
    blocked := job_blocked_ids(blocked);
    to_deliver := array(select unnest(to_deliver) except select unnest(blocked));
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
        select id, ordinal, 0 as rank, payload, cancel_requested_at from job
        where mailbox = spec.mailbox and lease_id is not null and mailbox_limit is not null and spec.when_busy = 'join'
        union all
        select id, ordinal, 1, payload, cancel_requested_at from job where mailbox = spec.mailbox and status = 'queued') live
      where cancel_requested_at is null and (spec.joins is null or payload @> spec.joins) order by rank, ordinal limit 1;
      if found then
        spec_ordinal := spec.n; job_id := joins; joined := true;
        return next;
        continue;
      end if;
    end if;
    free_slots := spec.mailbox_limit
      - (select count(*) from job where mailbox = spec.mailbox and lease_id is not null and mailbox_limit is not null)
      - (select count(*) from (
          -- Not now(), because jobs committed since this transaction began are due, too.
          select from job where mailbox = spec.mailbox and status = 'queued' and not later
            and (mailbox_limit = 1 and attempt > 0 or run_at <= clock_timestamp())
          limit spec.mailbox_limit) waiting);
    insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, later, settle, payload, status, max_tries, run_at, request_id,
      trace_parent)
    values (spec.id, spec.name, spec.queue, spec.owner_id, spec.mailbox, spec.mailbox_limit, coalesce(spec.delay_ms > 0, false), spec.settle,
      spec.payload, 'queued', spec.max_tries, now() + make_interval(secs => coalesce(spec.delay_ms, 0) / 1000), spec.request_id, spec.trace_parent);
    queues := queues || spec.queue;
    if free_slots > 0 or spec.delay_ms > 0 then
      to_deliver := to_deliver || spec.id;
    end if;
    spec_ordinal := spec.n; job_id := spec.id; joined := false;
    return next;
  end loop;

  perform job_count_add(queues, 1, 0);
  if waiting_quota is not null then
    perform job_quota(array(select (s ->> 'owner_id')::integer from jsonb_array_elements(specs) s), waiting_quota);
  end if;
  perform job_send(to_deliver);
  perform job_send(scheduled, array_fill(last_ordinal, array[cardinality(scheduled)]));
  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'mailbox_limit' is null;
end $$;
