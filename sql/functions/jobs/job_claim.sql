-- Claims the jobs that deliveries announce, for a lease. Takes at most `slots` due jobs per mailbox, oldest first, from
-- a range of ordinals, and respects the mailbox limit. Each mailbox appears once, with the task of its delivery. Sends
-- the next delivery for each mailbox that has more jobs. Returns the jobs in order as JSON, one list per job in the
-- format that `toClaimed` reads, or null if there are none. Reading one value takes a third of the time of reading
-- rows.
--
-- Every queued job has a delivery that starts at it or before it. A job added behind others has none of its own (see
-- job_enqueue), and its transaction shares the mailbox's lock until its commit. So the start of the next delivery, or
-- its absence, is decided only under that lock. If the lock is not available, the same delivery is repeated.
--
-- Locked rows are skipped. Usually another claim holds them, but a transaction that writes about a job, or ends an
-- attempt after a takeover, may hold them, too. So no delivery is dropped without a check for jobs that are still
-- queued.
create or replace function job_claim(lease uuid, tasks text[], mailboxes text[], limits integer[], owners integer[], firsts bigint[],
  lasts bigint[], slots integer[])
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  -- Delay of the next delivery if no more jobs were found.
  retry_delay constant interval := '20 ms';
  locked text[] := '{}';
  with_more text[];
  queues text[];
  claims text;
  worker_name text;
begin
  select name into worker_name from worker_lease where id = lease;
  -- Rescuers would immediately take over jobs claimed under a lost lease.
  if not found then
    perform job_deliver(tasks, mailboxes, limits, owners, firsts, lasts, array_fill(now() + retry_delay, array[cardinality(tasks)]));
    return null;
  end if;
  if exists (select from unnest(limits) max_running where max_running is not null) then
    select coalesce(array_agg(w.mailbox), '{}') into locked from unnest(mailboxes, limits) as w(mailbox, max_running)
    where w.max_running is not null and pg_try_advisory_xact_lock(mailbox_lock_key(w.mailbox));
    -- Scheduled jobs that are now due start to wait. Any delivery of the mailbox triggers this, because deliveries that
    -- are handled together become one. Due jobs beyond the first 500 are left for the claims that follow each end of a
    -- job. The condition uses now(), because an index can serve it. now() is after the check that found the delivery
    -- due.
    update job set later = false from unnest(locked) as w(mailbox) cross join lateral (
      select id from job where job.mailbox = w.mailbox and job.status = 'queued' and job.later and job.run_at <= now()
      order by job.run_at limit 500) due
    where job.id = due.id;
  end if;

  with wanted as (
    -- A claim in a limited mailbox starts at its oldest queued job, which may be a requeued one.
    select w.task, w.mailbox, w.max_running, case when w.max_running is null then w.first else 0 end as first, w.last,
      case when w.max_running is null then w.slots else least(w.slots, w.max_running - (
      select count(*) from job where job.mailbox = w.mailbox and job.lease_id is not null and job.mailbox_limit is not null)) end as free
    from unnest(tasks, mailboxes, limits, firsts, lasts, slots) as w(task, mailbox, max_running, first, last, slots)
    where w.max_running is null or w.mailbox = any(locked)
  ), claimed as (
    update job set status = 'running', lease_id = lease, worker = worker_name, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from wanted cross join lateral (
      select id from (
        select job.id, job.name, job.run_at, job.ordinal from job
        where job.mailbox = wanted.mailbox and job.status = 'queued' and not job.later and job.ordinal >= wanted.first
          and job.ordinal <= coalesce(wanted.last, 9223372036854775807)
          -- The job that an actor retries is its next job, even before it is due.
          and (wanted.max_running = 1 and job.attempt > 0 or job.run_at <= clock_timestamp())
        order by job.ordinal limit greatest(wanted.free, 0) for no key update skip locked) waiting
      where waiting.run_at <= clock_timestamp() and waiting.name = wanted.task
        -- No job of an actor overtakes a skipped one.
        and (wanted.max_running is distinct from 1 or not exists (
          select from job where job.mailbox = wanted.mailbox and job.status = 'queued' and not job.later and job.ordinal < waiting.ordinal
            and (job.attempt > 0 or job.run_at <= clock_timestamp())))) next
    where job.id = next.id
    returning job.id, job.ordinal, job.name, job.queue, job.attempt, job.tries, job.max_tries, job.interruptions, job.owner_id, job.mailbox,
      job.mailbox_limit, job.request_id, job.payload, job.run_at, job.trace_parent, job.seq, job.label, job.progress_current,
      job.progress_total, wanted.free
  ), event as (
    insert into job_event_row (job_id, seq, kind, data, attempt)
    select c.id, c.seq, 'status', jsonb_build_object('status', 'running', 'label', c.label,
      'current', c.progress_current, 'total', c.progress_total), c.attempt from claimed c where c.attempt > 1
  )
  select
    json_agg(json_build_array(c.id, c.name, c.attempt, c.tries, c.max_tries, c.interruptions, c.owner_id, c.mailbox,
      c.mailbox_limit, c.request_id, c.payload::text, date_part('epoch', clock_timestamp() - c.run_at)::float4, c.trace_parent)
      order by c.ordinal)::text,
    array_agg(c.queue),
    -- Mailboxes that may have more jobs: limited ones, and those that filled all their slots.
    array(select c.mailbox from claimed c group by c.mailbox, c.mailbox_limit, c.free
      having c.mailbox_limit is not null or count(*) >= c.free)
  into claims, queues, with_more from claimed c;
  perform job_count_add(queues, -1, 1);

  -- A delivery with an upper bound needs no lock, because no job is ever added to wait behind it.
  select locked || coalesce(array_agg(w.mailbox), '{}') into locked from unnest(mailboxes, limits, lasts) as w(mailbox, max_running, last)
  where w.max_running is null and (w.last is not null or pg_try_advisory_xact_lock(mailbox_lock_key(w.mailbox)));

  -- A separate statement, so that it sees commits from before the locks. Jobs that other transactions are claiming
  -- still look queued.
  perform job_send_next(array_agg(w.mailbox), array_agg(case when w.max_running is null then w.first end), array_agg(w.last),
    case when has_more then interval '0' else retry_delay end)
  from (
    select w.*, w.mailbox = any(with_more) as has_more from unnest(mailboxes, limits, firsts, lasts) as w(mailbox, max_running, first, last)
    where w.mailbox = any(locked) and (w.max_running is null or w.max_running > (
      select count(*) from job where job.mailbox = w.mailbox and job.lease_id is not null and job.mailbox_limit is not null))) w
  group by has_more;
  perform job_deliver(array_agg(w.task), array_agg(w.mailbox), array_agg(w.max_running), array_agg(w.owner), array_agg(w.first),
    array_agg(null::bigint), array_agg(now() + case when w.mailbox = any(with_more) then interval '0' else retry_delay end))
  from unnest(tasks, mailboxes, limits, owners, firsts) as w(task, mailbox, max_running, owner, first) where w.mailbox <> all(locked);
  return claims;
end $$;
