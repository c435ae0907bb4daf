-- Cancels jobs, and with a batch its members. Jobs that wait end immediately. Running ones are marked, and their workers
-- learn of it at the next heartbeat. A marked batch ends once its members have. Finished jobs stay as they are. Returns
-- the ids that exist, and those of the jobs whose state has changed with them.
create or replace function job_cancel(ids uuid[]) returns setof uuid
language plpgsql
as $$
declare
  cancelled_ids uuid[];
  late uuid[];
  locked text[];
  changed uuid[];
  ended uuid[];
  closed uuid[];
  freed text[];
  to_settle uuid[];
  queued_queues text[];
  waiting_queues text[];
begin
  cancelled_ids := array(
    with recursive cancelled(id) as (
      select unnest(ids) union select job.id from cancelled join job on job.batch_id = cancelled.id and job.finished_at is null)
    select id from cancelled);
  locked := array(select mailbox from job where id = any(cancelled_ids) and mailbox_limit is not null and finished_at is null);
  perform mailbox_lock(locked);
  perform from job where id = any(cancelled_ids) and finished_at is null order by job_lock_order(job) for no key update;
  -- A separate statement, so it sees the states under the locks.
  with found as (
    select id, status, status || '' = 'waiting' and (attempt > 0 or payload ? 'is_open') as is_batch from job
    where id = any(cancelled_ids) and finished_at is null
  ), cancelled as (
    update job set
      status = case when found.status = 'running' or is_batch then job.status else 'cancelled' end,
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      finished_at = case when found.status = 'running' or is_batch then null else now() end,
      seq = seq + case when found.status = 'running' or is_batch then 0 else 1 end
    from found where job.id = found.id and job.finished_at is null
    returning job.id, job.finished_at, job.settle, job.queue, job.mailbox, job.mailbox_limit, job.payload, found.status, is_batch
  )
  select coalesce(array_agg(id), '{}'), coalesce(array_agg(id) filter (where finished_at is not null), '{}'),
    coalesce(array_agg(id) filter (where is_batch and payload ->> 'is_open' = 'true'), '{}'),
    array_agg(distinct mailbox) filter (where mailbox_limit is not null and finished_at is not null),
    array_agg(id) filter (where settle is not null and finished_at is not null),
    array_agg(queue) filter (where status in ('scheduled', 'available')),
    array_agg(queue) filter (where status = 'waiting' and finished_at is not null)
  into changed, ended, closed, freed, to_settle, queued_queues, waiting_queues from cancelled;
  update job set payload = payload || '{"is_open": false}' where id = any(closed);
  perform job_count_add(queued_queues, -1, 0);
  perform job_count_add(waiting_queues, 0, 0, -1);
  if cardinality(ended) > 0 then
    perform webhook_jobs_ended(ended);
    if to_settle is not null then
      perform job_settle(to_settle);
    end if;
  end if;
  return query select job_release(ended, closed, locked);
  -- A batch that is marked gets no more members (see job_enqueue). These were added meanwhile.
  late := array(select id from job where batch_id = any(cancelled_ids) and cancel_requested_at is null and finished_at is null);
  if cardinality(late) > 0 then
    return query select job_cancel(late);
  end if;
  if freed is not null then
    perform job_deliver(array(select id from job_next(freed)));
  end if;
  return query select id from job where id = any(ids) union select unnest(changed);
end $$;
