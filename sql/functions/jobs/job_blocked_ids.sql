-- Returns those of the given jobs that wait behind an older job of their mailbox. The older job was due when added, so
-- its delivery has no upper bound. Searches only the last 2000 of all jobs, because claims leave dead index entries
-- that an open snapshot retains.
create or replace function job_blocked_ids(ids uuid[]) returns uuid[] language sql
as $$
  select coalesce(array_agg(job.id), '{}') from job cross join lateral (
    select from job older where older.mailbox = job.mailbox and older.status = 'queued' and not older.later and older.run_at = older.created_at
      and older.ordinal < job.ordinal and older.ordinal > job.ordinal - 2000
    order by older.ordinal limit 1) before
  where job.id = any(ids) and job.run_at <= now()
$$;
