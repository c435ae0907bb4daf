-- Changes the payload and the time of a job that has never started; null keeps either. Returns its id, or no row if the
-- job has started, was cancelled or does not exist.
create or replace function job_change(job_id uuid, new_payload jsonb, new_run_at timestamptz) returns setof uuid language plpgsql
as $$
declare
  changed job;
begin
  perform mailbox_lock(array(select mailbox from job where id = job_id and mailbox_limit is not null));
  update job set payload = coalesce(new_payload, payload), run_at = coalesce(new_run_at, run_at), status = case
      when status = 'waiting' or new_run_at is null then status
      when new_run_at > now() then 'scheduled'
      else 'available' end
  where id = job_id and attempt = 0 and lease_id is null and finished_at is null and cancel_requested_at is null
  returning * into changed;
  if not found then return; end if;
  if changed.status = 'available' then
    perform job_announce(array[job_id]);
  elsif changed.mailbox_limit is not null then
    -- The job may have been the one for which the others wait.
    perform job_deliver(array(select id from job_next(array[changed.mailbox])));
  end if;
  return next job_id;
end $$;
