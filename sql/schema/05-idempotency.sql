-- The first answer to each Idempotency-Key of a caller, kept for 24 hours: written in the transaction of what the request did.
-- Of one that waits for a job there is the job first, and its answer later.
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
);
create index idempotency_key_created_at_idx on idempotency_key (created_at);
