-- Returns those of these jobs that have an older available job of their mailbox ahead. Searches only the last 2000 of
-- all jobs, because an open snapshot retains the dead index entries of claims.
create or replace function job_behind(ids uuid[]) returns uuid[] language sql
as $$
  select coalesce(array_agg(job.id), '{}') from job cross join lateral (
    select from job older where older.mailbox = job.mailbox and older.status = 'available'
      and older.ordinal < job.ordinal and older.ordinal > job.ordinal - 2000
    order by older.ordinal limit 1) ahead
  where job.id = any(ids)
$$;
