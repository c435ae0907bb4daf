-- Whether an attempt is the running one of its job, and keeps it so until the commit: a take-over waits for it.
create or replace function job_fence(job_id uuid, of_attempt integer)
returns boolean
language sql
as $$
  select true from job where id = job_id and attempt = of_attempt and status = 'running' for share
$$;
