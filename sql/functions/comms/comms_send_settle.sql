-- Settles the message that a job was to send, in the transaction that ends the job: of one that was cancelled it will never be
-- sent, of one that failed for a reason that the message does not say it has failed. A request that is under way is none of
-- this: what becomes of it is known elsewhere.
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
