-- Adds deliveries to the queue in one statement, with one NOTIFY. Each announces that a mailbox has jobs of a task from
-- one ordinal up to another; null means no upper bound. Only a worker that knows the task gets it.
create or replace function job_deliver(tasks text[], mailboxes text[], limits integer[], owners integer[], firsts bigint[],
  lasts bigint[], dues timestamptz[]) returns void
language plpgsql
as $$
begin
  if coalesce(cardinality(tasks), 0) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((d.task,
    json_build_object('mailbox', d.mailbox, 'limit', d.max_running, 'owner', d.owner, 'first', d.first, 'last', d.last), null, d.due, 32000,
    null, null, null)::graphile_worker.job_spec order by d.first))
  from unnest(tasks, mailboxes, limits, owners, firsts, lasts, dues) as d(task, mailbox, max_running, owner, first, last, due);
end $$;
