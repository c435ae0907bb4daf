-- Puts deliveries for these `sent` jobs into the queue, in one statement and with one NOTIFY: one each, or one for up
-- to `together` jobs of a task without actors. A delivery for several carries the number of each.
create or replace function job_send(ids uuid[], together integer default 1) returns void language plpgsql
as $$
begin
  if cardinality(ids) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((name, payload, null, run_at, 32000, null, null, null)::graphile_worker.job_spec
    order by first))
  from (
    select name, run_at, min(ordinal) as first, case when count(*) = 1
      then json_build_object('id', (array_agg(id))[1], 'delivery', min(delivery))
      else json_build_object('jobs', json_agg(json_build_array(id, delivery) order by ordinal)) end as payload
    from (
      select job.id, job.name, job.run_at, job.ordinal, job.delivery, case when job.actor is null
        then (row_number() over (partition by job.name, job.run_at, job.actor order by job.ordinal) - 1) / together
        else -job.ordinal end as part
      from job where job.id = any(ids) and job.status || '' = 'sent') sent
    group by name, run_at, part) deliveries;
end $$;
