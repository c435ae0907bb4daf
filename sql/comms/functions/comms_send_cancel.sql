-- Cancels a message and its job, and returns the resulting status. It returns `cancelled` also for an email that some
-- recipients have, and that stays `sent`, if it has cancelled the others. The status does not become `cancelled` if the job
-- has ended, or if a request is in progress, was accepted or may have been accepted. No row if there is no such
-- message. An attempt that starts its request takes the same locks in the same order. So either the attempt finds the
-- message cancelled, or this call finds the request started.
create or replace function comms_send_cancel(send_id uuid) returns table (status text, job_id uuid) language plpgsql as $$
#variable_conflict use_column
declare
  send_job uuid;
  s comms_send;
  closed boolean := false;
begin
  select c.job_id into send_job from comms_send c where c.id = send_id;
  perform mailbox_lock(array(select mailbox from job where id = send_job and mailbox_limit is not null));
  perform from job where id = send_job for update;
  select * into s from comms_send where id = send_id for no key update;
  if s.status in ('scheduled', 'queued', 'failed') and s.provider_id is null
    and exists (select from job where id = send_job and id = s.job_id and finished_at is null) then
    perform job_cancel(array[send_job]);
    -- Updates the message now, because a running job ends only once its worker learns of the cancellation.
    if (select c.settled_at is null or c.status = 'failed' from comms_send c where c.id = send_id) then
      perform comms_send_close(array[send_id], 'cancelled', null, null);
    end if;
    closed := true;
  end if;
  return query select case when closed then 'cancelled' else c.status end, c.job_id from comms_send c where c.id = send_id;
end $$;
