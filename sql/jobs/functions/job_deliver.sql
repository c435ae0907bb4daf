-- Adds a delivery for each of these jobs to the end of the queue, in one statement. It says: look at this mailbox, from
-- this ordinal on. A delivery has the priority of its job. Wakes the workers with one notification. Its payload is the number
-- of deliveries of each task, as `TASK:NUMBER` separated by spaces, or empty for too many tasks to list. The notification of
-- graphile-worker names no tasks, so it would wake the runners of all queues.
--
-- Deliveries of worker queues, whose tasks have names with a slash, have a table and a channel of their own.
create or replace function job_deliver(ids uuid[]) returns void language plpgsql
as $$
declare
  tasks text[];
  worker_ids uuid[];
  deliveries graphile_worker.job_spec[];
begin
  if coalesce(cardinality(ids), 0) = 0 then return; end if;
  select array_agg(job.name), array_agg((job.name,
    json_build_object('mailbox', job.mailbox, 'limit', job.mailbox_limit, 'owner', job.owner_id, 'first', job.ordinal, 'id', job.id,
      'queue', job.queue, 'priority', job.priority),
    null, null, 32000, null, job.priority, null)::graphile_worker.job_spec order by job.ordinal)
    filter (where position('/' in job.name) = 0),
    array_agg(job.id) filter (where position('/' in job.name) > 0)
  into tasks, deliveries, worker_ids
  from unnest(ids) wanted(id) cross join lateral (select * from job where job.id = wanted.id offset 0) job;
  if tasks is null then return; end if;
  if deliveries is not null then
    perform graphile_worker.add_jobs(deliveries);
  end if;
  if worker_ids is not null then
    insert into worker_delivery (queue, mailbox, name, mailbox_limit, first, priority)
    select queue, mailbox, name, mailbox_limit, ordinal, coalesce(priority, 0) from job where id = any(worker_ids) order by ordinal;
  end if;
  perform pg_notify(channel, case when count(*) <= 50 then string_agg(task || ':' || number, ' ') else '' end)
  from (select case when position('/' in task) > 0 then 'worker_deliveries' else 'deliveries' end as channel, task, count(*) as number
    from unnest(tasks) task group by task) counted
  group by channel;
end $$;
