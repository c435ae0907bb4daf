-- Their events go with jobs that are removed. By statement: housekeeping removes a thousand at a time, an account takes all of
-- its own along.
create or replace function job_gone() returns trigger language plpgsql as $$
begin
  delete from job_event_row e using gone where e.job_id = gone.id;
  return null;
end $$;

create or replace trigger job_gone after delete on job referencing old table as gone for each statement execute function job_gone();
