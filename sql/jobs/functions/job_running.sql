-- Returns the jobs that run under a lease as JSON: id, attempt, and `cancel`, which is true if cancellation was
-- requested. With `ids`, returns only those of them, and reads no dead index entries of other jobs.
create or replace function job_running(lease uuid, ids uuid[] default null) returns json language sql stable
as $$
  select coalesce(json_agg(json_build_object('id', id, 'attempt', attempt, 'cancel', cancel_requested_at is not null)), '[]') from (
    select id, attempt, cancel_requested_at from job where ids is null and lease_id = lease and status = 'running'
    union all
    select id, attempt, cancel_requested_at from job where id = any(ids) and lease_id = lease and status || '' = 'running') running
$$;
