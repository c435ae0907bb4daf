-- Counts down the jobs that wait for ended ones, in the transaction that ends them, and makes those available that wait
-- for no more. `closed` are batches that no longer wait to be closed. `locked` are mailboxes whose lock the caller holds.
-- `had_ended` are jobs that ended earlier, whose new dependants are to be counted. Returns the ids of all jobs whose state
-- has changed, for their subscribers.
--
-- A job that needs all its dependencies done is cancelled if one of them ended otherwise or was deleted. So are the jobs
-- that need it. A cancelled batch ends once its members have.
--
-- A lock of a mailbox comes before the locks of rows. So a job of a limited mailbox becomes `scheduled`, due now, unless
-- the caller holds the lock. The scheduler makes it available.
create or replace function job_release(ended uuid[], closed uuid[] default '{}', locked text[] default '{}', had_ended uuid[] default '{}')
returns setof uuid language plpgsql
as $$
#variable_conflict use_column
declare
  -- The jobs that end now, and those whose dependants are to be counted.
  level uuid[] := ended;
  depended uuid[] := ended || had_ended;
  closing uuid[] := closed;
  has_dependants boolean;
  unsuccessful uuid[];
  cancelled uuid[];
  waiters jsonb;
  changed uuid[];
  released uuid[];
  released_queues text[];
begin
  loop
    -- Most jobs have neither dependants nor a batch. These reads of indexes are then all that their end costs.
    has_dependants := exists (select from job_dependency)
      and exists (select from job_dependency where after_id = any(depended) and not has_ended);
    if not has_dependants and cardinality(closing) = 0
       and not exists (select from job where id = any(level) and batch_id is not null) then
      return;
    end if;

    if has_dependants then
      unsuccessful := array(
        select ended.id from unnest(depended) ended(id) left join job on job.id = ended.id where job.status || '' is distinct from 'done');
      cancelled := job_cancel_dependants(unsuccessful);
      return query select unnest(cancelled);
      level := level || cancelled;
      depended := depended || cancelled;
    end if;

    -- Each waiter with the number of ends that concern it.
    with link as (
      update job_dependency set has_ended = true where has_dependants and after_id = any(depended) and not has_ended returning job_id
    ), counted as (
      select job_id as id, 0 as members from link
      union all
      select batch_id, 1 from job where id = any(level) and batch_id is not null
      union all
      select id, 0 from unnest(closing) id
    )
    select jsonb_object_agg(id, jsonb_build_object('ends', ends, 'members', members)) into waiters
    from (select id, count(*) as ends, sum(members) as members from counted group by id) waiter;
    closing := '{}';

    -- In one order, so that two transactions never deadlock.
    perform from job where id = any(array(select key::uuid from jsonb_object_keys(waiters) key)) order by job_lock_order(job) for no key update;
    with waiter as (
      select job.id, (entry.value ->> 'ends')::integer as ends, (entry.value ->> 'members')::integer as members, job.status as former, case
          -- A running job adds members to its own batch, and waits for them only when its attempt ends.
          when job.status || '' <> 'waiting' then job.status
          when job.waits_for > (entry.value ->> 'ends')::integer then 'waiting'
          when job.cancel_requested_at is not null then 'cancelled'
          when job.run_at > now() or job.mailbox_limit is not null and job.mailbox <> all(locked) then 'scheduled'
          else 'available' end as status
      from jsonb_each(waiters) entry join job on job.id = entry.key::uuid
      where job.finished_at is null and job.waits_for is not null
    ), report as (
      select waiter.id from waiter
      where members > 0 and status in ('waiting', 'running') and not exists (
        select from (select created_at from job_event_row e where e.job_id = waiter.id order by seq desc limit 1) last
        where last.created_at > clock_timestamp() - interval '250 ms')
    ), moved as (
      update job set
        waits_for = greatest(job.waits_for - waiter.ends, 0),
        progress_current = case when waiter.members > 0 then coalesce(job.progress_current, 0) + waiter.members else job.progress_current end,
        label = case when waiter.members > 0
          then format('%s of %s tasks have ended', coalesce(job.progress_current, 0) + waiter.members, job.progress_total) else job.label end,
        status = waiter.status,
        run_at = case when waiter.status = waiter.former then job.run_at else greatest(job.run_at, now()) end,
        seq = job.seq + case when waiter.status = 'cancelled' or waiter.id in (select id from report) then 1 else 0 end,
        finished_at = case when waiter.status = 'cancelled' then now() end
      from waiter where job.id = waiter.id
      returning job.id, job.queue, job.status, waiter.former, job.seq, job.label, job.progress_current, job.progress_total
    ), event as (
      insert into job_event_row (job_id, seq, kind, data, created_at)
      select id, seq, 'status', jsonb_build_object('status', status, 'label', label, 'current', progress_current, 'total', progress_total),
        clock_timestamp()
      from moved where id in (select id from report)
    )
    select coalesce(array_agg(id), '{}'), array_agg(id) filter (where status = 'available' and former = 'waiting'),
      coalesce(array_agg(id) filter (where status = 'cancelled'), '{}'),
      array_agg(queue) filter (where status in ('scheduled', 'available') and former = 'waiting')
    into changed, released, level, released_queues
    from moved where status <> former or id in (select id from report);
    depended := level;
    perform job_count_add(released_queues, 1, 0, -1);
    perform job_announce(released);
    perform job_cancelled(level);
    return query select unnest(changed);
  end loop;
end $$;
