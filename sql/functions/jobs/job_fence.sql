-- Whether an attempt is the current one of its job. It stays so until the commit: whoever would give the job to another
-- attempt, or end this one in its place, first locks the row `for update`. What the attempt reports meanwhile does not wait: its
-- worker reports and ends all jobs there in the same statements. Nor does its own `done`, after which no other attempt begins.
create or replace function job_fence(job_id uuid, of_attempt integer)
returns boolean
language sql
as $$
  select true from job where id = job_id and attempt = of_attempt and status = 'running' for key share
$$;
