-- Returns the time until which an ended job is kept; null if it has not ended. `retention` has the seconds for which failed
-- jobs are kept, after those for the others. Jobs that others need are kept longer.
create or replace function job_expires_at(job job, retention float8[]) returns timestamptz language sql stable parallel safe
  return job.finished_at + make_interval(secs => retention[case when job.status = 'failed' then 2 else 1 end]);
