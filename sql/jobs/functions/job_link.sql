-- Links added jobs to their batches and to the jobs that they depend on. `locked` are mailboxes whose lock the caller
-- holds. `has_dependencies` is true if one of the jobs depends on others.
create or replace function job_link(added uuid[], locked text[], has_dependencies boolean) returns void language plpgsql
as $$
declare
  batches integer;
  open_batches integer;
  after_ids uuid[];
  others uuid[];
  ended uuid[];
begin
  after_ids := case when has_dependencies
    then array(select distinct unnest(after) from job where id = any(added) and after is not null) else '{}' end;
  others := array(select unnest(after_ids) except select unnest(added));
  -- Shares the rows' locks until the commit, so that each of these jobs has ended already or finds its dependants later.
  perform from job where id = any(others) order by job_lock_order(job) for share;
  if exists (select from unnest(others) wanted(id) where not exists (select from job where job.id = wanted.id)) then
    raise exception 'A dependency does not exist' using errcode = 'check_violation', constraint = 'job_dependency_exists';
  end if;
  -- A job of a batch may depend on others, but on none that waits for the batch.
  if cardinality(others) > 0 and exists (
    with recursive reached(id) as (
      select unnest(others)
      union
      select awaited.id from reached join job on job.id = reached.id and job.finished_at is null cross join lateral (
        select unnest(job.after) union all select member.id from job member where member.batch_id = job.id and member.finished_at is null) awaited(id)
    )
    select from reached where id in (select batch_id from job where job.id = any(added) and after is not null)) then
    raise exception 'A job depends on its own batch' using errcode = 'check_violation', constraint = 'job_batch_cycle';
  end if;
  -- The lock of the batch's row orders this before or after its cancellation.
  with member as (
    select batch_id, count(*)::integer as members from job where id = any(added) and batch_id is not null group by batch_id
  ), counted as (
    update job set waits_for = coalesce(waits_for, 0) + members, progress_current = coalesce(progress_current, 0),
      progress_total = coalesce(progress_total, 0) + members,
      label = format('%s of %s tasks have ended', coalesce(progress_current, 0), coalesce(progress_total, 0) + members)
    from member where job.id = member.batch_id and job.cancel_requested_at is null
      and (job.status || '' = 'running' and not job.payload ? 'is_open' or job.status || '' = 'waiting' and job.payload ->> 'is_open' = 'true')
    returning job.id
  )
  select (select count(*) from member), (select count(*) from counted) into batches, open_batches;
  if open_batches < batches then
    raise exception 'The batch is closed' using errcode = 'check_violation', constraint = 'job_batch_open';
  end if;

  if cardinality(after_ids) = 0 then return; end if;
  insert into job_dependency (after_id, job_id)
  select after_id, id from job cross join lateral unnest(after) after_id where id = any(added) and after is not null
  order by after_id, id;
  ended := array(select id from job where id = any(after_ids) and finished_at is not null);
  if cardinality(ended) > 0 then
    perform job_release('{}', locked => locked, had_ended => ended);
  end if;
end $$;
