-- A job's status as clients see it: jobs that wait for a worker are `queued`, whether they are
-- due or not.
create or replace function job_client_status(status text) returns text language sql immutable parallel safe
  return case when status in ('scheduled', 'available') then 'queued' else status end;
