-- Settles the message of a job in the transaction that ends the job. A cancelled job cancels its message. A failed job
-- fails it, unless the message already has its own reason. A message with a request in progress stays unchanged,
-- because another function settles its outcome.
create or replace function comms_send_settle(ended job) returns void language plpgsql as $$
begin
  if ended.status = 'cancelled' then
    perform comms_send_close(array(select id from comms_send
      where job_id = ended.id and status in ('scheduled', 'queued', 'failed') and provider_id is null), 'cancelled', null, null);
  elsif ended.status = 'failed' then
    perform comms_send_close(array(select id from comms_send
      where job_id = ended.id and status in ('scheduled', 'queued')), 'failed', ended.error_code, ended.error_detail);
  end if;
end $$;
