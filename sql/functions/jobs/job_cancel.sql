-- Cancels: a waiting job ends at once, a running one is marked and its worker told by the next heartbeat; one that is held
-- counts as running. Answers false when the job is missing; an ended one stays as it is.
create or replace function job_cancel(job_id uuid)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
  found_actor text;
  cancelled_actor text;
  settled boolean;
begin
  select actor into found_actor from job where id = job_cancel.job_id;
  if not found then return false; end if;
  if found_actor is not null then
    perform pg_advisory_xact_lock(actor_lock_key(found_actor));
  else
    perform job_begin(array[job_cancel.job_id], true);
  end if;
  with moved as (
    update job set
      status = case when status = 'running' then status else 'cancelled' end,
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      finished_at = case when status = 'running' then null else now() end,
      delivery = delivery + case when status = 'running' then 0 else 1 end,
      seq = seq + case when status = 'running' then 0 else 1 end
    where id = job_cancel.job_id and status in ('queued', 'sent', 'running')
    returning status, actor, settle
  )
  select actor, settle is not null into cancelled_actor, settled from moved where status = 'cancelled';
  if settled then
    perform job_settle(array[job_cancel.job_id]);
  end if;
  if cancelled_actor is not null then
    perform job_send(job_send_heads(array[cancelled_actor]));
  end if;
  return true;
end $$;
