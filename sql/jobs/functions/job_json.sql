-- Returns a job as public JSON. Without `retention`, its `expires_at` is null, see `job_expires_at`.
create or replace function job_json(job job, retention float8[] default null) returns json language sql stable parallel safe
  return json_build_object(
    'job_id', job.id, 'name', job.name, 'queue', job.queue, 'status', job_client_status(job.status), 'label', job.label,
    'progress', case when job.progress_current is not null or job.progress_total is not null
      then json_build_object('current', job.progress_current, 'total', job.progress_total) end,
    'attempts', job.attempt, 'retry_of', job.retry_of, 'batch_id', job.batch_id, 'result', job.result,
    'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end,
    'created_at', iso(job.created_at),
    'run_at', case when job.status in ('waiting', 'scheduled', 'available') then iso(job.run_at) end, 'started_at', iso(job.started_at), 'finished_at', iso(job.finished_at),
    'expires_at', iso(job_expires_at(job, retention)));
