-- Adds deliveries to the end of the queue in one statement, and wakes the workers with one notification. Its payload is
-- the number of deliveries of each task, as `TASK:NUMBER` separated by spaces, or empty for too many tasks to list. The
-- notification of graphile-worker names no tasks, so it would wake the runners of all queues.
create or replace function job_redeliver(tasks text[], mailboxes text[], limits integer[], owners integer[], firsts bigint[])
returns void language plpgsql
as $$
begin
  if coalesce(cardinality(tasks), 0) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((d.task,
    json_build_object('mailbox', d.mailbox, 'limit', d.max_running, 'owner', d.owner, 'first', d.first),
    null, null, 32000, null, null, null)::graphile_worker.job_spec order by d.first))
  from unnest(tasks, mailboxes, limits, owners, firsts) as d(task, mailbox, max_running, owner, first);
  perform pg_notify('deliveries', case when count(*) <= 50 then string_agg(task || ':' || number, ' ') else '' end)
  from (select task, count(*) as number from unnest(tasks) task group by task) counted;
end $$;
