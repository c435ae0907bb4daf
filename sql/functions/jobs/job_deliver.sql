-- Adds a delivery for each of these available jobs, in one statement. It says: look at this mailbox, from this ordinal
-- on. Only a worker that knows the job's task gets it.
create or replace function job_deliver(ids uuid[]) returns void language plpgsql
as $$
begin
  if coalesce(cardinality(ids), 0) = 0 then return; end if;
  perform job_redeliver(array_agg(job.name), array_agg(job.mailbox), array_agg(job.mailbox_limit), array_agg(job.owner_id),
    array_agg(job.ordinal))
  from unnest(ids) wanted(id) cross join lateral (select * from job where job.id = wanted.id offset 0) job;
end $$;
