-- Puts deliveries into the queue again, unchanged and due after a delay, in one statement and with one NOTIFY.
create or replace function job_redeliver(tasks text[], mailboxes text[], limits integer[], owners integer[], firsts bigint[],
  delay interval default '0') returns void language plpgsql
as $$
begin
  if coalesce(cardinality(tasks), 0) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((d.task,
    json_build_object('mailbox', d.mailbox, 'limit', d.max_running, 'owner', d.owner, 'first', d.first),
    null, now() + delay, 32000, null, null, null)::graphile_worker.job_spec order by d.first))
  from unnest(tasks, mailboxes, limits, owners, firsts) as d(task, mailbox, max_running, owner, first);
end $$;
