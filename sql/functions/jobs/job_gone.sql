-- Deletes the events of deleted jobs. Per statement: housekeeping deletes a thousand jobs at a time, and deleting an
-- account deletes all of its jobs.
create or replace function job_gone() returns trigger language plpgsql as $$
begin
  delete from job_event_row e using gone where e.job_id = gone.id;
  return null;
end $$;

create or replace trigger job_gone after delete on job referencing old table as gone for each statement execute function job_gone();
