-- Deletes the events and log lines of deleted jobs, and subtracts live jobs from the counts. Runs per statement,
-- because the pruner deletes a thousand jobs at a time and deleting an account deletes all of its jobs.
create or replace function job_delete_traces() returns trigger language plpgsql as $$
begin
  delete from job_event_row e using gone where e.job_id = gone.id;
  delete from job_dependency d using gone where d.job_id = gone.id;
  delete from job_log l using gone where l.job_id = gone.id;
  perform job_count_add(array(select queue from gone where status in ('scheduled', 'available')), -1, 0);
  perform job_count_add(array(select queue from gone where lease_id is not null), 0, -1);
  perform job_count_add(array(select queue from gone where status = 'waiting'), 0, 0, -1);
  -- Live jobs are deleted only together with their account. Jobs of others that depend on them are cancelled.
  perform job_release(array(select id from gone where finished_at is null));
  return null;
end $$;

create or replace trigger job_delete_traces after delete on job referencing old table as gone for each statement execute function job_delete_traces();
