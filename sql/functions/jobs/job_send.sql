-- Sends a delivery for each of these queued jobs. The delivery ranges from the ordinal of the job to the element of
-- `lasts` at the same index; null means no upper bound. It is due when the job is, but not before `min_delay` has
-- passed.
create or replace function job_send(ids uuid[], lasts bigint[] default null, min_delay interval default '0') returns void
language plpgsql
as $$
begin
  if coalesce(cardinality(ids), 0) = 0 then return; end if;
  perform job_deliver(array_agg(job.name), array_agg(job.mailbox), array_agg(job.mailbox_limit), array_agg(job.owner_id),
    array_agg(job.ordinal), array_agg(wanted.last), array_agg(greatest(job.run_at, now() + min_delay)))
  from unnest(ids, lasts) as wanted(id, last)
  cross join lateral (select * from job where job.id = wanted.id and job.status || '' = 'queued' offset 0) job;
end $$;
