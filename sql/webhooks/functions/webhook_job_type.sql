-- Returns the type of the message about the end of a job.
create or replace function webhook_job_type(j job) returns text language sql immutable
  return case when j.name = 'jobs.batch' then 'batch.done' else 'job.' || j.status end;
