-- Stores what a worker reports, see job_store_report. If `notifies`, it commits, and then notifies subscribers in a second
-- transaction. A commit that notifies holds a lock of the whole cluster, so it must not flush the reports as well. The caller
-- must then be in no transaction.
create or replace procedure job_report(progress jsonb, ends jsonb, suspect integer, max_interruptions integer, notifies boolean,
  inout progressed uuid[] default null, inout afters integer[] default null, inout ended uuid[] default null)
language plpgsql
as $$
begin
  select stored.progressed, stored.afters, stored.ended into progressed, afters, ended
  from job_store_report(progress, ends, suspect, max_interruptions) stored;
  if notifies then
    commit;
    -- See `notifyJobChanges` in sql/connections/notify.ts.
    perform set_config('synchronous_commit', 'off', true),
      job_notify(progressed || array(select unnest(ended) except select unnest(progressed)), afters);
  end if;
end $$;
