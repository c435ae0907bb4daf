-- Returns true if an attempt is the current one of its job, and null otherwise. The attempt then stays current until
-- the commit, because taking over the job or ending the attempt requires a `for update` lock on the row. The attempt's
-- own reports do not wait, because its worker reports and ends all its jobs in the same statements. Nor does its own
-- `done`, after which no other attempt starts.
create or replace function job_fence(job_id uuid, of_attempt integer)
returns boolean
language sql
as $$
  select true from job where id = job_id and attempt = of_attempt and status = 'running' for key share
$$;
