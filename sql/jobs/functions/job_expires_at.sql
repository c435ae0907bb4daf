-- Returns the time until which an ended job is kept; null if it has not ended. `retention` has the seconds for which failed
-- jobs are kept, after those for the others. The jobs of a batch are kept until the batch expires: `infinity` before it has
-- ended. Jobs that others need are kept longer.
create or replace function job_expires_at(job job, retention float8[]) returns timestamptz language sql stable parallel safe
  return case when job.finished_at is not null then greatest(
    job.finished_at + make_interval(secs => retention[case when job.status = 'failed' then 2 else 1 end]),
    case when job.batch_id is not null then (
      select case when b.finished_at is null then 'infinity'
        else b.finished_at + make_interval(secs => retention[case when b.status = 'failed' then 2 else 1 end]) end
      from job b where b.id = job.batch_id) end) end;
