-- Moves the oldest delivery of low priority of these queues ahead of all others.
create or replace function job_promote(queues text[]) returns void language sql
as $$
  update graphile_worker._private_jobs set priority = -2 where id = (
    select id from graphile_worker._private_jobs
    where is_available and priority = 1 and payload ->> 'queue' = any(queues)
    order by run_at, id limit 1 for update skip locked)
$$;
