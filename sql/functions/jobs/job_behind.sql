-- Which of these jobs wait behind one of their mailbox that was due when added: its delivery has no upper bound. Only
-- the last 2000 of all jobs are searched: a snapshot that is held open keeps the dead index entries that claims leave.
create or replace function job_behind(ids uuid[]) returns uuid[] language sql
as $$
  select coalesce(array_agg(job.id), '{}') from job cross join lateral (
    select from job older where older.mailbox = job.mailbox and older.status = 'queued' and not older.later and older.run_at = older.created_at
      and older.ordinal < job.ordinal and older.ordinal > job.ordinal - 2000
    order by older.ordinal limit 1) before
  where job.id = any(ids) and job.run_at <= now()
$$;
