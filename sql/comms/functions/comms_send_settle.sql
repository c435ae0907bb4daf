-- Settles the message of a job in the transaction that ends the job. A cancelled job cancels its message. A failed job
-- fails it, unless the message already has its own reason. A message with a request in progress stays unchanged,
-- because another function settles its outcome.
create or replace function comms_send_settle(ended job) returns void language plpgsql as $$
begin
  if ended.status = 'cancelled' then
    update comms_send set status = 'cancelled', error_code = null, detail = null, message = null, settled_at = now()
    where job_id = ended.id and status in ('scheduled', 'queued', 'failed') and provider_id is null;
  elsif ended.status = 'failed' then
    update comms_send set status = 'failed', error_code = ended.error_code, detail = ended.error_detail, settled_at = now()
    where job_id = ended.id and status in ('scheduled', 'queued');
  end if;
end $$;
