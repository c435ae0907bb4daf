-- The first response to each Idempotency-Key of a caller, kept for 24 hours. The transaction of the request writes the
-- row. If the request waits for a job, the row first holds the job's id, and the response is added later.
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
  -- The table is vacuumed early, because all rows are replaced daily.
) with (autovacuum_vacuum_scale_factor = 0.02);
create index idempotency_key_created_at_idx on idempotency_key (created_at);
-- Finds jobs that still hold a response and must therefore not be deleted.
create index idempotency_key_job_id_idx on idempotency_key (job_id) where status is null;
