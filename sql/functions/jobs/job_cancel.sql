-- Cancels a job. A queued job ends immediately. A running one is marked, and its worker learns of it at the next
-- heartbeat. A finished job does not change. Returns false if there is no such job.
create or replace function job_cancel(job_id uuid)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
  limited_mailbox text;
  ended record;
begin
  select case when mailbox_limit is not null then mailbox end into limited_mailbox from job where id = job_cancel.job_id;
  if not found then return false; end if;
  if limited_mailbox is not null then
    perform mailbox_lock(array[limited_mailbox]);
  end if;
  update job set
    status = case when status = 'running' then status else 'cancelled' end,
    cancel_requested_at = coalesce(cancel_requested_at, now()),
    finished_at = case when status = 'running' then null else now() end,
    seq = seq + case when status = 'running' then 0 else 1 end
  where id = job_cancel.job_id and status in ('queued', 'running')
  returning status, settle, queue into ended;
  if ended.status = 'cancelled' then
    perform job_count_add(array[ended.queue], -1, 0);
    perform webhook_jobs_ended(array[job_cancel.job_id]);
    if ended.settle is not null then
      perform job_settle(array[job_cancel.job_id]);
    end if;
    if limited_mailbox is not null then
      perform job_send_next(array[limited_mailbox]);
    end if;
  end if;
  return true;
end $$;
