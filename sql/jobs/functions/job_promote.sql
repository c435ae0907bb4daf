-- Moves the oldest delivery of a priority that is lower than `highest`, the highest claimed one, ahead of all others.
create or replace function job_promote(queues text[], highest smallint) returns void language sql
as $$
  update graphile_worker._private_jobs set priority = -2 where id = (
    select id from graphile_worker._private_jobs
    where is_available and priority = (select case when highest < 0 and random() < 0.5 then 0 else 1 end) and payload ->> 'queue' = any(queues)
    order by run_at, id limit 1 for update skip locked)
$$;
