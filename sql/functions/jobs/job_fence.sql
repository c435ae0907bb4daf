-- Whether an attempt is the current one of its job. It stays so until the commit: a takeover waits for the row lock.
create or replace function job_fence(job_id uuid, of_attempt integer)
returns boolean
language sql
as $$
  select true from job where id = job_id and attempt = of_attempt and status = 'running' for share
$$;
