-- Cancels jobs. Jobs that wait end immediately; running ones are marked, and their workers learn of it at the next
-- heartbeat. Finished jobs stay as they are. Returns the ids that exist.
create or replace function job_cancel(ids uuid[]) returns setof uuid
language plpgsql
as $$
declare
  ended uuid[];
  freed text[];
  to_settle uuid[];
  queues text[];
begin
  perform mailbox_lock(array(select mailbox from job where id = any(ids) and mailbox_limit is not null));
  with found as (
    select id from job where id = any(ids) and finished_at is null order by id for no key update
  ), cancelled as (
    update job set
      status = case when status = 'running' then status else 'cancelled' end,
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      finished_at = case when status = 'running' then null else now() end,
      seq = seq + case when status = 'running' then 0 else 1 end
    from found where job.id = found.id and job.finished_at is null
    returning job.id, job.status, job.settle, job.queue, job.mailbox, job.mailbox_limit
  )
  select array_agg(id), array_agg(distinct mailbox) filter (where mailbox_limit is not null),
    array_agg(id) filter (where settle is not null), array_agg(queue)
  into ended, freed, to_settle, queues from cancelled where status = 'cancelled';
  if ended is not null then
    perform job_count_add(queues, -1, 0);
    perform webhook_jobs_ended(ended);
    if to_settle is not null then
      perform job_settle(to_settle);
    end if;
    if freed is not null then
      perform job_deliver(array(select id from job_next(freed)));
    end if;
  end if;
  return query select id from job where id = any(ids);
end $$;
