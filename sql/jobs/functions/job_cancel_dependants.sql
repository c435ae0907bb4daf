-- Cancels the waiting jobs that need one of these jobs done, which ended otherwise, and those that need them in turn.
-- Returns the ids of the cancelled jobs.
create or replace function job_cancel_dependants(unsuccessful uuid[]) returns uuid[] language plpgsql
as $$
declare
  dependants uuid[];
  cancelled uuid[];
begin
  if cardinality(unsuccessful) = 0 then return '{}'; end if;
  dependants := array(
    with recursive dependant(id) as (
      select unnest(unsuccessful)
      union
      select waiter.id from dependant join job_dependency d on d.after_id = dependant.id and not d.has_ended
      join job waiter on waiter.id = d.job_id and waiter.after_outcome = 'done' and waiter.status || '' = 'waiting'
    )
    select id from dependant except select unnest(unsuccessful));
  if cardinality(dependants) = 0 then return '{}'; end if;
  perform from job where id = any(dependants) order by job_lock_order(job) for no key update;
  with moved as (
    update job set status = 'cancelled', finished_at = now(), seq = seq + 1, waits_for = 0,
      error_code = case when cancel_requested_at is null then 'job.dependency_failed' end,
      error_detail = case when cancel_requested_at is null then format('The job depends on job %s, which did not succeed', (
        select after_id from unnest(after) with ordinality dependency(after_id, n)
        where after_id in (select unnest(unsuccessful) union all select unnest(dependants)) order by n limit 1)) end
    where id = any(dependants) and status || '' = 'waiting'
    returning id
  )
  select coalesce(array_agg(id), '{}') into cancelled from moved;
  perform job_cancelled(cancelled);
  return cancelled;
end $$;
