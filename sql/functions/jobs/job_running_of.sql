-- Returns those of the given jobs that run under a lease, in the format of `job_running`.
create or replace function job_running_of(lease uuid, ids uuid[]) returns json language sql stable
as $$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.id = any(ids) and job.lease_id = lease and job.status || '' = 'running'
$$;
