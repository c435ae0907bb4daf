-- Adds a delivery for each of these available jobs, in one statement and with one NOTIFY. It says: look at this
-- mailbox, from this ordinal on. Only a worker that knows the job's task gets it.
create or replace function job_deliver(ids uuid[], delay interval default '0') returns void language plpgsql
as $$
begin
  if coalesce(cardinality(ids), 0) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((job.name, json_build_object('mailbox', job.mailbox, 'limit', job.mailbox_limit,
      'owner', job.owner_id, 'first', job.ordinal),
    null, now() + delay, 32000, null, null, null)::graphile_worker.job_spec order by job.ordinal))
  from unnest(ids) wanted(id) cross join lateral (select * from job where job.id = wanted.id offset 0) job
  having count(*) > 0;
end $$;
