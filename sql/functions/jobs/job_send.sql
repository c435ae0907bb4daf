-- Sends a delivery for each of these waiting jobs: from it on, due when it is, and no sooner than `pause`.
create or replace function job_send(ids uuid[], pause interval default '0') returns void language plpgsql
as $$
begin
  if coalesce(cardinality(ids), 0) = 0 then return; end if;
  perform job_deliver(array_agg(name), array_agg(mailbox), array_agg(mailbox_limit), array_agg(owner_id), array_agg(ordinal),
    array_agg(greatest(run_at, now() + pause)))
  from job where id = any(ids) and job.status || '' = 'queued';
end $$;
