-- Writes that jobs run which are held, whatever is said of them next; others are left as they are. A job whose attempt has
-- its fence up can't be written: either this waits for it, or passes it over and answers with it.
create or replace function job_begin(ids uuid[], waits boolean)
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  locked uuid[];
begin
  -- A take under way has its rows locked: whether it holds them is seen after it.
  if waits then
    select array_agg(id) into locked from (
      select id from job where id = any(ids) and job.status || '' = 'queued' and job.actor is null order by id for update) mine;
  else
    select array_agg(id) into locked from (
      select id from job where id = any(ids) and job.status || '' = 'queued' and job.actor is null for update skip locked) mine;
    return query select id from job
      where id = any(ids) and job.status || '' = 'queued' and job.actor is null and id <> all(coalesce(locked, '{}'));
  end if;
  update job set status = 'running', lease_id = h.lease_id, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
    started_at = h.taken_at, seq = job.seq + 1
  from unnest(locked) as given(id) join job staged on staged.id = given.id
  cross join lateral (
    select * from job_hold where job_hold.queue = staged.queue and job_hold.lane = staged.lane
      and job_hold.owner = coalesce(staged.owner_id, 0) and upper(job_hold.ordinals) > staged.ordinal
      and job_hold.ordinals @> staged.ordinal) h
  where job.id = given.id;
end $$;
