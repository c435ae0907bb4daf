-- The job ledger. A row of `job` is the truth about a job. It waits in a mailbox: one for each owner and task, or that of an
-- actor. graphile-worker's table holds only deliveries, and a delivery only says that a mailbox has due jobs from an ordinal on;
-- the worker that gets it claims what it can run of them.
--
-- status:  queued  waits in its mailbox
--          running held by the lease `lease_id`; `attempt` fences every write of the one that runs it
--          done, failed, cancelled   written once

create table worker_lease (
  id uuid not null,
  name text not null,
  queues text[] not null,
  pool_ids text[] not null default '{}',
  threads integer not null default 0,
  memory_bytes bigint not null default 0,
  started_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint worker_lease_pkey primary key (id)
);

create table job (
  id uuid not null,
  ordinal bigint generated always as identity,
  name text not null,
  queue text not null,
  owner_id integer,
  -- Where it waits; an actor's or its owner's for this task. Compared as bytes: half the time of an index in a language's order.
  mailbox text collate "C" not null,
  -- So many jobs of the mailbox run at once, the oldest first; 1: an actor, whose messages keep their order. Null: any number.
  mailbox_limit integer,
  -- A function of this row (`settle(job)`) that is called in the transaction in which the job ends, however it does.
  settle text,
  payload jsonb not null,
  status text not null,
  label text not null default '',
  progress_current integer,
  progress_total integer,
  seq integer not null default 0,
  attempt integer not null default 0,
  tries integer not null default 0,
  -- How often a process or a thread has died with an attempt of it and others in it; then, how often with it alone.
  interruptions integer not null default 0,
  reported integer not null default 0,
  max_tries integer not null,
  lease_id uuid,
  run_at timestamptz not null default now(),
  cancel_requested_at timestamptz,
  result jsonb,
  error_code text,
  error_detail text,
  -- The failed job that this one does again; each is done again once. No foreign key: housekeeping removes the failed one
  -- first, and that changes nothing about the other.
  retry_of uuid,
  request_id text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  constraint job_pkey primary key (id),
  constraint job_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint job_status_check check (status in ('queued', 'running', 'done', 'failed', 'cancelled')),
  constraint job_mailbox_limit_check check (mailbox_limit between 1 and 1000),
  constraint job_settle_check check (settle is null or mailbox_limit is not null),
  constraint job_lease_check check ((status = 'running') = (lease_id is not null)),
  constraint job_finished_check check ((status in ('done', 'failed', 'cancelled')) = (finished_at is not null)),
  constraint job_error_check check ((status = 'failed') = (error_code is not null)),
  constraint job_max_tries_check check (max_tries between 1 and 100)
) with (fillfactor = 85);
-- An actor handles one message at a time.
create unique index job_actor_running_key on job (mailbox) where status = 'running' and mailbox_limit = 1;
-- What is counted before another job of a limited mailbox may run; running in words that `job_running_idx` has not, so that no
-- plan that was made for an empty table reads all that runs.
create index job_mailbox_running_idx on job (mailbox) where lease_id is not null and mailbox_limit is not null;
-- The only index of what waits, for the same reason.
create index job_mailbox_idx on job (mailbox, ordinal) where status = 'queued';
create index job_owner_id_idx on job (owner_id, id) where owner_id is not null;
create index job_running_idx on job (lease_id) where status = 'running';
create index job_finished_at_idx on job (finished_at) where finished_at is not null;
-- The latest failures among many jobs that did not fail.
create index job_failed_idx on job (finished_at) where status = 'failed';
create unique index job_retry_of_key on job (retry_of) where retry_of is not null;

-- What streams replay. No foreign key: it would lock and rewrite the hot job row for every event; a trigger removes
-- the events of a job with the job.
create table job_event_row (
  job_id uuid not null,
  seq integer not null,
  kind text not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  constraint job_event_row_pkey primary key (job_id, seq)
);

-- Of what happens to a job its own row says most: that its first attempt began, and how it ended. Rows of their own for
-- these two were a fifth of what PostgreSQL did for a short job (40 us of CPU time, 32 without), and most of what it left.
-- So only what the row does not say is stored, and `job_event` is both together, for whoever reads. A job begins without
-- events and its first attempt is the first, so that one is event 1; an ended job says no more, so its end is the last, and
-- its row stays as it was then.
create view job_event as
  select id as job_id, 1 as seq, 'status' as kind,
    '{"label": "", "total": null, "status": "running", "current": null}'::jsonb as data, started_at as created_at
  from job where attempt > 0
  union all
  select job_id, seq, kind, data, created_at from job_event_row
  union all
  select id, seq, 'status', jsonb_build_object('status', status, 'label', label, 'current', progress_current,
    'total', progress_total), finished_at
  from job where finished_at is not null;
