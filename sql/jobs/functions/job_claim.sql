-- Claims the jobs that deliveries announce, for a lease. Takes at most `slots` available jobs per mailbox, oldest first
-- from an ordinal on, and respects the mailbox limit. Each mailbox appears once, with the task of its delivery. Sends
-- the next delivery for each mailbox that has more jobs. Returns the jobs in order as JSON, one list per job in the
-- format that `toClaimedJob` reads, or null if there are none. Reading one value takes a third of the time of reading
-- rows. Also returns the mailboxes whose delivery is not done: the caller keeps it and claims again. `delivers` is true if
-- the claim has sent deliveries, so that its commit notifies anyway.
--
-- Takes no more jobs of a mailbox with a rate than may start now. If more are left, the first of them becomes due when
-- the next start is allowed, in `wait_ms`; the scheduler then makes it available. One start in twenty brings forward a
-- delivery of lower priority, which might otherwise never be its turn.
--
-- A job that was added behind others has no delivery of its own (see job_announce). So only a claim that holds the
-- mailbox's lock decides where the next delivery starts, or that none is needed. Without the lock, the delivery is not
-- done. The claim then takes nothing from a mailbox with a limit, because it cannot count the running jobs.
--
-- The start of a job is the time of its update, not that of the transaction, which may have begun before a dependency
-- ended.
--
-- Locked rows are skipped, because another claim usually holds them. They still look available to the check for more
-- jobs, so a delivery is never dropped while any are left.
create or replace function job_claim(lease uuid, tasks text[], mailboxes text[], limits integer[], firsts bigint[], slots integer[],
  out claims text, out again text[], out wait_ms float8, out delivers boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  locked text[];
  queues text[];
  claimed_from text[];
  rated text[] := '{}';
  highest smallint;
  next_jobs uuid[];
  worker_name text;
begin
  select name into worker_name from worker_lease where id = lease;
  -- Rescuers would immediately take over jobs claimed under a lost lease.
  if not found then
    again := mailboxes;
    return;
  end if;
  locked := array(select w.mailbox from unnest(mailboxes, limits) as w(mailbox, max_running)
    where w.max_running is not null and pg_try_advisory_xact_lock(mailbox_lock_key(w.mailbox)));
  if cardinality(locked) > 0 then
    rated := array(select name from start_rate where name = any(locked));
  end if;

  with wanted as (
    select w.task, w.mailbox, w.max_running, w.first, case when w.max_running is null then w.slots else least(w.slots, w.max_running - (
      select count(*) from job where job.mailbox = w.mailbox and job.lease_id is not null and job.mailbox_limit is not null),
      (select start_rate_allowed(r) from start_rate r where r.name = w.mailbox and w.mailbox = any(rated))) end as free
    from unnest(tasks, mailboxes, limits, firsts, slots) as w(task, mailbox, max_running, first, slots)
    where w.max_running is null or w.mailbox = any(locked)
  ), claimed as (
    update job set status = 'running', lease_id = lease, worker = worker_name, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, clock_timestamp()), seq = job.seq + 1
    from wanted cross join lateral (
      select id from (
        select job.id, job.name, job.mailbox_limit, job.ordinal from job
        where job.mailbox = wanted.mailbox and job.status = 'available' and job.ordinal >= wanted.first
        order by job.ordinal limit greatest(wanted.free, 0) for no key update skip locked) oldest
      where oldest.name = wanted.task and oldest.mailbox_limit is not distinct from wanted.max_running
        -- No message of an actor overtakes a skipped one, or one that waits to be retried.
        and (wanted.max_running is distinct from 1
          or not exists (select from job where job.mailbox = wanted.mailbox and job.status = 'available' and job.ordinal < oldest.ordinal)
            and not exists (select from job
              where job.mailbox = wanted.mailbox and job.status = 'scheduled' and job.attempt > 0 and job.ordinal < oldest.ordinal))) next
    where job.id = next.id
    returning job.id, job.ordinal, job.name, job.queue, job.attempt, job.tries, job.max_tries, job.interruptions, job.owner_id, job.mailbox,
      job.mailbox_limit, job.request_id, job.payload, job.run_at, job.trace_parent, job.seq, job.label, job.progress_current,
      job.progress_total, job.priority
  ), event as (
    insert into job_event_row (job_id, seq, kind, data, attempt)
    select c.id, c.seq, 'status', jsonb_build_object('status', 'running', 'label', c.label,
      'current', c.progress_current, 'total', c.progress_total), nullif(c.attempt, 1) from claimed c where c.seq > 1
  )
  select
    json_agg(json_build_array(c.id, c.name, c.attempt, c.tries, c.max_tries, c.interruptions, c.owner_id, c.mailbox,
      c.mailbox_limit, c.request_id, c.payload::text, date_part('epoch', clock_timestamp() - c.run_at)::float4, c.trace_parent, c.seq)
      order by c.ordinal)::text,
    array_agg(c.queue), coalesce(array_agg(c.mailbox), '{}'), coalesce(min(c.priority), 0)
  into claims, queues, claimed_from, highest from claimed c;
  perform job_count_add(queues, -1, 1);
  if position('/' in tasks[1]) = 0 and random() * 20 < cardinality(queues) then
    perform job_promote(queues, highest);
  end if;
  if cardinality(rated) > 0 then
    update start_rate set next_at = greatest(next_at, clock_timestamp()) + started.jobs * make_interval(secs => seconds / starts)
    from (select mailbox, count(*)::integer as jobs from unnest(claimed_from) mailbox group by mailbox) started
    where name = started.mailbox and name = any(rated);
    rated := array(select name from start_rate r where name = any(rated) and start_rate_allowed(r) < 1);
  end if;

  -- Locks mailboxes without a limit only now, because a transaction that adds jobs to one may wait for the lock.
  locked := locked || array(select w.mailbox from unnest(mailboxes, limits) as w(mailbox, max_running)
    where w.max_running is null and pg_try_advisory_xact_lock(mailbox_lock_key(w.mailbox)));
  -- A separate statement, so it sees commits from before the locks. Jobs that another transaction locks look available.
  -- So the delivery of a mailbox that gave none is not done, unless the next job has another task or limit, or must wait.
  -- Behind an older message of an actor, it is done too, because the older one has its own. If it stayed, it would
  -- hold up a worker queue, whose claims begin with the oldest deliveries.
  with next as (
    select next.id, next.mailbox, next.mailbox = any(claimed_from) or next.mailbox = any(rated)
      or next.name <> tasks[array_position(mailboxes, next.mailbox)]
      or next.mailbox_limit is distinct from limits[array_position(mailboxes, next.mailbox)] as is_due,
      next.mailbox_limit is not distinct from 1 and exists (select from job where job.mailbox = next.mailbox and job.status = 'available'
        and job.ordinal < firsts[array_position(mailboxes, next.mailbox)]) as is_behind
    from (select array_agg(w.mailbox) as held, array_agg(w.first) as starts
      from unnest(mailboxes, firsts) as w(mailbox, first) where w.mailbox = any(locked)) w
    cross join lateral job_next(w.held, w.starts) next
  )
  select array_agg(id) filter (where is_due), array_agg(mailbox) filter (where not is_due and not is_behind) into next_jobs, again from next;
  if cardinality(rated) > 0 then
    with later as (
      update job set status = 'scheduled', run_at = start_rate_next(r) from start_rate r
      where job.id = any(next_jobs) and job.status || '' = 'available' and r.name = job.mailbox and r.name = any(rated)
      returning job.id, job.run_at
    )
    select extract(epoch from min(run_at) - clock_timestamp()) * 1000,
      array(select unnest(next_jobs) except select id from later) into wait_ms, next_jobs from later;
  end if;
  delivers := cardinality(next_jobs) > 0;
  perform job_deliver(next_jobs);
  again := again || array(select mailbox from unnest(mailboxes) mailbox where mailbox <> all(locked));
end $$;
