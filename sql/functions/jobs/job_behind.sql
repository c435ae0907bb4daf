-- Which of these jobs wait behind one of their mailbox that was due from the beginning: its delivery has no end. It is looked for among the last 2000 of all jobs: while somebody holds
-- a snapshot open, what claims leave dead in the index of the waiting stays there.
create or replace function job_behind(ids uuid[]) returns uuid[] language sql
as $$
  select coalesce(array_agg(job.id), '{}') from job cross join lateral (
    select from job older where older.mailbox = job.mailbox and older.status = 'queued' and older.run_at = older.created_at
      and older.ordinal < job.ordinal and older.ordinal > job.ordinal - 2000
    order by older.ordinal limit 1) before
  where job.id = any(ids) and job.run_at <= now()
$$;
