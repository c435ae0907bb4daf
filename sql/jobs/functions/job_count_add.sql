-- Adds to the counts of live jobs. Each element of `queues` stands for one job. Updates an unlocked row of each queue,
-- or inserts one, so that no transaction waits for another.
create or replace function job_count_add(queues text[], queued_change integer, running_change integer, waiting_change integer default 0) returns void language plpgsql as $$
begin
  with change as (
    select queue, count(*) as jobs from unnest(queues) queue group by queue
  ), free as (
    select change.*, (
      select c.id from job_count c where c.queue = change.queue order by c.id limit 1 for update skip locked) as id
    from change
  ), counted as (
    update job_count c set queued = c.queued + free.jobs * queued_change, running = c.running + free.jobs * running_change,
      waiting = c.waiting + free.jobs * waiting_change
    from free where c.id = free.id
  )
  insert into job_count (queue, queued, running, waiting)
  select queue, jobs * queued_change, jobs * running_change, jobs * waiting_change from free where id is null;
end $$;
