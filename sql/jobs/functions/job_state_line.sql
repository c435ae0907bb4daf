-- Returns the current state of a job as a line, see job_event_line.
create or replace function job_state_line(job job) returns text language sql stable
  return job_event_line(job, job.seq, 'status', jsonb_build_object('status', job_client_status(job.status), 'label', job.label,
    'current', job.progress_current, 'total', job.progress_total));
