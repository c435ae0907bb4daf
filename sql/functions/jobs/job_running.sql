-- Returns the jobs that run under a lease as JSON: id, attempt, and `cancel`, which is true if cancellation was
-- requested.
create or replace function job_running(lease uuid) returns json language sql stable
as $$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.lease_id = lease and job.status = 'running'
$$;
