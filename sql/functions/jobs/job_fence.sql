-- True if an attempt is the current one of its job; null otherwise. It then stays current until the commit: to take
-- over the job or end the attempt, a transaction first locks the row `for update`. The attempt's own reports do not
-- wait, because its worker reports and ends all its jobs in the same statements. Nor does its own `done`, after which
-- no other attempt starts.
create or replace function job_fence(job_id uuid, of_attempt integer)
returns boolean
language sql
as $$
  select true from job where id = job_id and attempt = of_attempt and status = 'running' for key share
$$;
