-- Cancels the waiting jobs that need one of these jobs done, which ended otherwise, and those that need them in turn.
-- Returns the ids of the cancelled jobs.
--
-- A job may be added until the row of the job that it needs is locked. So each round looks again, until one finds no more.
create or replace function job_cancel_dependants(unsuccessful uuid[]) returns uuid[] language plpgsql
as $$
declare
  dependants uuid[];
  round uuid[];
  cancelled uuid[] := '{}';
begin
  if cardinality(unsuccessful) = 0 then return '{}'; end if;
  loop
    dependants := array(
      with recursive dependant(id) as (
        select unnest(unsuccessful)
        union
        -- One look at each job. A join would begin with all waiting jobs, for each step of a chain.
        select waiter.id from dependant
        cross join lateral (select job_id from job_dependency where after_id = dependant.id and not has_ended offset 0) d
        cross join lateral (select id from job where id = d.job_id and after_outcome = 'done' and status || '' = 'waiting' offset 0) waiter
      )
      select id from dependant except select unnest(unsuccessful));
    if cardinality(dependants) = 0 then return cancelled; end if;
    perform from job where id = any(dependants) order by job_lock_order(job) for no key update;
    with moved as (
      update job set status = 'cancelled', finished_at = now(), seq = seq + 1, waits_for = 0,
        error_code = case when cancel_requested_at is null then 'job.dependency_failed' end,
        error_detail = case when cancel_requested_at is null then format('The job depends on job %s, which did not succeed', (
          select after_id from unnest(after) with ordinality dependency(after_id, n)
          where after_id = any(unsuccessful || dependants) order by n limit 1)) end
      where id = any(dependants) and status || '' = 'waiting'
      returning id
    )
    select coalesce(array_agg(id), '{}') into round from moved;
    perform job_cancelled(round);
    cancelled := cancelled || round;
    unsuccessful := unsuccessful || round;
  end loop;
end $$;
