-- Adds jobs in the caller's transaction. Each spec: id, name, queue, owner_id, mailbox, mailbox_limit, key, rate, priority,
-- when_busy, joins, settle, payload, max_tries, request_id, trace_parent. Times: delay_ms (from now, by the database's
-- clock) or run_at, and max_delay_ms. Links: after, after_outcome, batch_id, is_batch. A rate has the starts, seconds and
-- burst of the mailbox (see `start_rate`).
--
-- A spec with `when_busy` = `join` joins a job of its mailbox whose payload contains `joins`: the first running one,
-- else the first that waits. It skips jobs that are being cancelled. If it finds none, the spec is added.
-- `join_waiting` joins only jobs that wait, because a running job may have passed the point that the message is about.
-- `replace` joins one that has never started, which gets the payload and the time of the spec. It starts at the latest
-- `max_delay_ms` after it was added.
--
-- A spec with `after` waits for these jobs, of which some may be specs. One with `is_batch` waits until it is closed, see
-- `job_close`. One with a `batch_id` belongs to that batch, which must be open, or run and add members to itself.
--
-- Notifies subscribers of the jobs. Returns the job id of each spec: its own, or that of the job that it joined.
-- `waiting_quota` is the default quota of waiting jobs per owner (see `job_quota`); null: not checked.
create or replace function job_enqueue(specs jsonb, waiting_quota bigint default null)
returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  missing_function text;
  locked text[];
  rates jsonb;
  has_joins boolean;
  has_links boolean;
  has_dependencies boolean;
  batch jsonb;
  spec jsonb;
  found_id uuid;
  joined_ids jsonb := '{}';
  added uuid[] := '{}';
  available uuid[] := '{}';
  replaced uuid[] := '{}';
  queues text[] := '{}';
  waiting_queues text[] := '{}';
begin
  select s ->> 'settle' into missing_function from jsonb_array_elements(specs) s
  where s ->> 'settle' is not null and to_regprocedure(format('%I(job)', s ->> 'settle')) is null limit 1;
  if found then
    raise exception 'There is no function %(job) to settle a job', missing_function;
  end if;
  select coalesce(array_agg(s ->> 'mailbox') filter (where s ->> 'mailbox_limit' is not null), '{}'),
    jsonb_object_agg(s ->> 'mailbox', s -> 'rate') filter (where s ->> 'rate' is not null),
    bool_or(s ->> 'when_busy' <> 'wait'), bool_or(coalesce(s ->> 'after', s ->> 'batch_id', s ->> 'is_batch') is not null),
    bool_or(s ->> 'after' is not null)
  into locked, rates, has_joins, has_links, has_dependencies from jsonb_array_elements(specs) s;
  if cardinality(locked) > 0 then
    perform mailbox_lock(locked);
  end if;
  if rates is not null then
    perform start_rate_set(rates);
  end if;

  -- In their order: together those that join no job, each of the others alone.
  foreach batch in array case when has_joins then array(
    select jsonb_agg(s order by n) from (
      select s, n, s ->> 'when_busy' = 'wait' as waits, n - row_number() over (partition by s ->> 'when_busy' = 'wait' order by n) as run
      from jsonb_array_elements(specs) with ordinality e(s, n)) spec
    group by waits, case when waits then run else n end order by min(n))
    else array[specs] end
  loop
    spec := batch -> 0;
    if spec ->> 'when_busy' <> 'wait' then
      select id into found_id from (
        select id, ordinal, 0 as rank, payload, cancel_requested_at, attempt from job
        where mailbox = spec ->> 'mailbox' and lease_id is not null and mailbox_limit is not null and spec ->> 'when_busy' = 'join'
        union all
        select id, ordinal, 1, payload, cancel_requested_at, attempt from job
        where mailbox = spec ->> 'mailbox' and status in ('waiting', 'scheduled', 'available')) live
      where cancel_requested_at is null and (spec -> 'joins' is null or payload @> (spec -> 'joins'))
        and (attempt = 0 or spec ->> 'when_busy' <> 'replace')
      order by rank, ordinal limit 1;
      if found then
        joined_ids := joined_ids || jsonb_build_object(spec ->> 'id', found_id);
        if spec ->> 'when_busy' = 'replace' then
          replaced := replaced || found_id;
          perform job_change(found_id, spec -> 'payload', least(
            greatest((spec ->> 'run_at')::timestamptz, now() + make_interval(secs => coalesce((spec ->> 'delay_ms')::float8, 0) / 1000)),
            (select created_at + make_interval(secs => (spec ->> 'max_delay_ms')::float8 / 1000) from job where id = found_id)));
        end if;
        continue;
      end if;
    end if;
    with inserted as (
      insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, key, priority, settle, payload, status, max_tries, run_at,
        after, after_outcome, batch_id, waits_for, progress_total, request_id, trace_parent)
      select s.id, s.name, s.queue, s.owner_id, s.mailbox, s.mailbox_limit, s.key, s.priority, s.settle, s.payload,
        case when s.is_batch or s.after is not null then 'waiting' when s.delay_ms > 0 or s.run_at > now() then 'scheduled' else 'available' end,
        s.max_tries, greatest(s.run_at, now() + make_interval(secs => coalesce(s.delay_ms, 0) / 1000)),
        s.after, s.after_outcome, s.batch_id, case when s.is_batch then 1 else cardinality(s.after) end, case when s.is_batch then 0 end,
        s.request_id, s.trace_parent
      from rows from (jsonb_to_recordset(batch) as (id uuid, name text, queue text, owner_id integer, mailbox text,
        mailbox_limit integer, key text, priority smallint, settle text, payload jsonb, max_tries integer, delay_ms float8,
        run_at timestamptz, after uuid[], after_outcome text, batch_id uuid, is_batch boolean, request_id text, trace_parent text))
        with ordinality as s(id, name, queue, owner_id, mailbox, mailbox_limit, key, priority, settle, payload, max_tries, delay_ms,
          run_at, after, after_outcome, batch_id, is_batch, request_id, trace_parent, n)
      order by s.n
      returning id, queue, status, waits_for
    )
    select added || array_agg(id), available || array_agg(id) filter (where status = 'available'),
      queues || array_agg(queue) filter (where waits_for is null), waiting_queues || array_agg(queue) filter (where waits_for is not null)
    into added, available, queues, waiting_queues from inserted;
  end loop;
  perform job_count_add(queues, 1, 0);
  if has_links then
    perform job_count_add(waiting_queues, 0, 0, 1);
  end if;
  if waiting_quota is not null then
    perform job_quota(array(select (s ->> 'owner_id')::integer from jsonb_array_elements(specs) s), waiting_quota);
  end if;
  if cardinality(available) > 0 then
    perform job_announce(available);
  end if;
  if has_links then
    perform job_link(added, locked, has_dependencies);
  end if;
  -- Watchers of all jobs see the jobs beyond these when they start.
  perform job_notify_ids((added || replaced)[1:1000]);
  return query select n, coalesce((joined_ids ->> (s ->> 'id'))::uuid, (s ->> 'id')::uuid), joined_ids ? (s ->> 'id')
    from jsonb_array_elements(specs) with ordinality e(s, n);
end $$;
