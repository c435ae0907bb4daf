-- The first response to each Idempotency-Key of a caller, kept for 24 hours and written in the transaction of the
-- request's work. For a request that waits for a job, the row holds the job first and gets the response later.
create table idempotency_key (
  scope text not null,
  key text not null,
  fingerprint bytea not null,
  job_id uuid,
  status smallint,
  headers jsonb,
  body text,
  created_at timestamptz not null default now(),
  constraint idempotency_key_pkey primary key (scope, key),
  constraint idempotency_key_answer_check check ((status is null) = (body is null)),
  constraint idempotency_key_use_check check (status is not null or job_id is not null)
  -- All of it is new each day.
) with (autovacuum_vacuum_scale_factor = 0.02);
create index idempotency_key_created_at_idx on idempotency_key (created_at);
-- For not deleting jobs that have the answers.
create index idempotency_key_job_id_idx on idempotency_key (job_id) where status is null;
