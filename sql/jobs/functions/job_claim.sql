-- Claims the jobs that deliveries announce, for a lease. Takes at most `slots` available jobs per mailbox, oldest first
-- from an ordinal on, and respects the mailbox limit. Each mailbox appears once, with the task of its delivery. Sends
-- the next delivery for each mailbox that has more jobs. Returns the jobs in order as JSON, one list per job in the
-- format that `toClaimed` reads, or null if there are none. Reading one value takes a third of the time of reading
-- rows. Also returns the mailboxes whose delivery is not done: the caller keeps it and claims again.
--
-- A job that was added behind others has no delivery of its own (see job_announce). So only a claim that holds the
-- mailbox's lock decides where the next delivery starts, or that none is needed. Without the lock, the delivery is not
-- done. The claim then takes nothing from a mailbox with a limit, because it cannot count the running jobs.
--
-- Locked rows are skipped, because another claim usually holds them. They still look available to the check for more
-- jobs, so a delivery is never dropped while any are left.
create or replace function job_claim(lease uuid, tasks text[], mailboxes text[], limits integer[], firsts bigint[], slots integer[],
  out claims text, out again text[])
language plpgsql
as $$
#variable_conflict use_column
declare
  locked text[];
  queues text[];
  claimed_from text[];
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

  with wanted as (
    select w.task, w.mailbox, w.max_running, w.first, case when w.max_running is null then w.slots else least(w.slots, w.max_running - (
      select count(*) from job where job.mailbox = w.mailbox and job.lease_id is not null and job.mailbox_limit is not null)) end as free
    from unnest(tasks, mailboxes, limits, firsts, slots) as w(task, mailbox, max_running, first, slots)
    where w.max_running is null or w.mailbox = any(locked)
  ), claimed as (
    update job set status = 'running', lease_id = lease, worker = worker_name, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from wanted cross join lateral (
      select id from (
        select job.id, job.name, job.ordinal from job
        where job.mailbox = wanted.mailbox and job.status = 'available' and job.ordinal >= wanted.first
        order by job.ordinal limit greatest(wanted.free, 0) for no key update skip locked) oldest
      where oldest.name = wanted.task
        -- No message of an actor overtakes a skipped one, or one that waits to be retried.
        and (wanted.max_running is distinct from 1
          or not exists (select from job where job.mailbox = wanted.mailbox and job.status = 'available' and job.ordinal < oldest.ordinal)
            and not exists (select from job
              where job.mailbox = wanted.mailbox and job.status = 'scheduled' and job.attempt > 0 and job.ordinal < oldest.ordinal))) next
    where job.id = next.id
    returning job.id, job.ordinal, job.name, job.queue, job.attempt, job.tries, job.max_tries, job.interruptions, job.owner_id, job.mailbox,
      job.mailbox_limit, job.request_id, job.payload, job.run_at, job.trace_parent, job.seq, job.label, job.progress_current,
      job.progress_total
  ), event as (
    insert into job_event_row (job_id, seq, kind, data, attempt)
    select c.id, c.seq, 'status', jsonb_build_object('status', 'running', 'label', c.label,
      'current', c.progress_current, 'total', c.progress_total), c.attempt from claimed c where c.attempt > 1
  )
  select
    json_agg(json_build_array(c.id, c.name, c.attempt, c.tries, c.max_tries, c.interruptions, c.owner_id, c.mailbox,
      c.mailbox_limit, c.request_id, c.payload::text, date_part('epoch', clock_timestamp() - c.run_at)::float4, c.trace_parent)
      order by c.ordinal)::text,
    array_agg(c.queue), coalesce(array_agg(distinct c.mailbox), '{}')
  into claims, queues, claimed_from from claimed c;
  perform job_count_add(queues, -1, 1);

  -- Locks mailboxes without a limit only now, because a transaction that adds jobs to one may wait for the lock.
  locked := locked || array(select w.mailbox from unnest(mailboxes, limits) as w(mailbox, max_running)
    where w.max_running is null and pg_try_advisory_xact_lock(mailbox_lock_key(w.mailbox)));
  -- A separate statement, so it sees commits from before the locks. Jobs that another transaction locks look available:
  -- the delivery of a mailbox that gave none is not done, unless the next job has another task.
  with next as (
    select next.id, next.mailbox, next.mailbox = any(claimed_from) or next.name <> tasks[array_position(mailboxes, next.mailbox)] as is_due
    from (select array_agg(w.mailbox) as mailboxes, array_agg(w.first) as firsts
      from unnest(mailboxes, firsts) as w(mailbox, first) where w.mailbox = any(locked)) w
    cross join lateral job_next(w.mailboxes, w.firsts) next
  )
  select array_agg(id) filter (where is_due), array_agg(mailbox) filter (where not is_due) into next_jobs, again from next;
  perform job_deliver(next_jobs);
  again := again || array(select mailbox from unnest(mailboxes) mailbox where mailbox <> all(locked));
end $$;
