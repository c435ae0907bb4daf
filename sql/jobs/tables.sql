-- The job ledger. A row of `job` is the source of truth for a job. A job waits in a mailbox, which belongs to its
-- actor, or to its owner and task. graphile-worker's table holds only deliveries. A delivery says that a mailbox has
-- due jobs from an ordinal on. The worker that gets a delivery claims as many of these jobs as it can run.
--
-- Status of a job:
--
-- - waiting: held back until the jobs that it waits for have ended; `job_release` counts them
-- - scheduled: not due yet; `job_schedule` makes it available once `run_at` has passed
-- - available: may be claimed
-- - running: held by the lease `lease_id`; `attempt` fences every write of the current attempt
-- - done, failed, cancelled: final

-- By default, autovacuum waits until a fifth of a table is dead. For 3.5 million jobs, that would be 700,000 rows, each
-- of which is written several times. Deliveries are rows that live for milliseconds, so vacuum both tables early.
alter table graphile_worker._private_jobs set (autovacuum_vacuum_scale_factor = 0.01);

create table worker_lease (
  id uuid not null,
  name text not null,
  queues text[] not null,
  pool_ids text[] not null default '{}',
  threads integer not null default 0,
  -- Number of threads that are running a job.
  busy integer not null default 0,
  memory_bytes bigint not null default 0,
  started_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- When an admin drained the worker, which stops its claims; null if not drained.
  drained_at timestamptz,
  -- Start of the current period without a late renewal of the lease.
  steady_since timestamptz not null default now(),
  -- The worker queue of an HTTP worker; null for our own workers.
  queue text collate "C",
  -- Host, language and version of an HTTP worker, as it names them, and the time for which it may be silent.
  info jsonb,
  ttl_seconds integer,
  constraint worker_lease_pkey primary key (id),
  constraint worker_lease_http_check check ((queue is null) = (info is null) and (queue is null) = (ttl_seconds is null)),
  constraint worker_lease_ttl_check check (ttl_seconds between 5 and 600)
);
create index worker_lease_queue_idx on worker_lease (queue) where queue is not null;

create table job (
  id uuid not null,
  ordinal bigint generated always as identity,
  name text not null,
  queue text not null,
  owner_id integer,
  -- The mailbox of the job's actor, or of its owner and task. Comparing bytes takes half the time of a language
  -- collation.
  mailbox text collate "C" not null,
  -- Maximum number of jobs of the mailbox that run concurrently, oldest first. 1 for an actor, whose messages keep
  -- their order; null for no limit.
  mailbox_limit integer,
  -- The caller's name for the mailbox; null if the caller named none.
  key text,
  -- Priority of the job's deliveries: -1 high, 1 low; null for normal.
  priority smallint,
  -- The jobs on which this one depends, in the caller's order; null if it depends on none. With `after_outcome` = `done`
  -- all of them must be done, otherwise this job is cancelled. `any` accepts every outcome.
  after uuid[],
  after_outcome text,
  -- The job that this one belongs to, which waits for all its members. No foreign key, because the pruner deletes either
  -- first.
  batch_id uuid,
  -- Number of jobs that have not ended and for which this job waits. An open batch counts one more, until it is closed.
  -- Null if the job never waited.
  waits_for integer,
  -- The SQL function `settle(job)`, called with this row in the transaction that ends the job, whatever its outcome.
  settle text,
  payload jsonb not null,
  status text not null,
  label text not null default '',
  progress_current integer,
  progress_total integer,
  seq integer not null default 0,
  attempt integer not null default 0,
  tries integer not null default 0,
  -- Number of deaths of a process or thread that ran the job, first next to other jobs, then in isolation.
  interruptions integer not null default 0,
  reported integer not null default 0,
  max_tries integer not null,
  lease_id uuid,
  -- Name of the worker that ran the latest attempt. The claim stores it, because the lease may be gone when the job
  -- ends.
  worker text,
  run_at timestamptz not null default now(),
  cancel_requested_at timestamptz,
  result jsonb,
  error_code text,
  error_detail text,
  -- Time before which a new request cannot help, for a failed job whose provider asked for a pause.
  retry_at timestamptz,
  -- The failed job that this one retries. A job is retried at most once. No foreign key, because the pruner deletes the
  -- failed job first and must not change this one.
  retry_of uuid,
  request_id text,
  -- traceparent of the enqueuing span (W3C Trace Context); null if not traced.
  trace_parent text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  constraint job_pkey primary key (id),
  constraint job_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint job_status_check check (status in ('waiting', 'scheduled', 'available', 'running', 'done', 'failed', 'cancelled')),
  constraint job_mailbox_limit_check check (mailbox_limit between 1 and 1000),
  constraint job_lease_check check ((status = 'running') = (lease_id is not null)),
  constraint job_finished_check check ((status in ('done', 'failed', 'cancelled')) = (finished_at is not null)),
  -- A job that a dependency has cancelled names the dependency.
  constraint job_error_check check (case status when 'failed' then error_code is not null when 'cancelled' then true else error_code is null end),
  constraint job_key_check check (length(key) between 1 and 200),
  constraint job_priority_check check (priority in (-1, 1)),
  constraint job_after_check check ((after is null) = (after_outcome is null) and cardinality(after) between 1 and 100),
  constraint job_after_outcome_check check (after_outcome in ('done', 'any')),
  constraint job_waiting_check check (waits_for >= 0 and (status <> 'waiting' or coalesce(waits_for, 0) > 0)),
  constraint job_max_tries_check check (max_tries between 1 and 100)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01);
-- An actor handles one message at a time.
create unique index job_actor_running_key on job (mailbox) where status = 'running' and mailbox_limit = 1;
-- Counts the running jobs of a limited mailbox. The predicate differs from that of `job_running_idx`. Otherwise, a plan
-- made for an empty table could read all running jobs.
create index job_mailbox_running_idx on job (mailbox) where lease_id is not null and mailbox_limit is not null;
-- Finds the available jobs of a mailbox for the ledger functions, and the jobs that others may join.
create index job_mailbox_idx on job (mailbox, status, ordinal) where status in ('waiting', 'scheduled', 'available');
-- Lists the members of a batch.
create index job_batch_idx on job (batch_id, ordinal) where batch_id is not null;
-- Lists the jobs of a caller's key.
create index job_key_idx on job (owner_id, key, ordinal) where key is not null;
-- Finds scheduled jobs that have become due.
create index job_scheduled_idx on job (run_at, ordinal) where status = 'scheduled';
-- Finds the job that an actor waits to retry, among any number of scheduled ones.
create index job_retrying_idx on job (mailbox, ordinal) where status = 'scheduled' and attempt > 0;
-- Job lists by status: of an owner, of public jobs without an owner, or of all.
create index job_owner_id_idx on job (owner_id, status, finished_at, ordinal) where owner_id is not null;
create index job_ownerless_idx on job (status, finished_at, ordinal) where owner_id is null
  and queue not in ('accounts', 'payments', 'schedules', 'webhooks');
-- Queued and waiting jobs. No other index of all jobs may have this order: the planner would scan that one up to its
-- first queued job.
-- `finished_at is null` limits the index to statements that repeat it. Otherwise a plan made for an empty table would
-- read the whole index to find one mailbox's jobs.
create index job_queued_idx on job (queue, status, ordinal) where status in ('waiting', 'scheduled', 'available') and finished_at is null;
-- Sorts all jobs by addition for searches. An index on `ordinal` alone could replace those of mailboxes in plans.
create index job_created_at_idx on job (created_at, ordinal);
create index job_running_idx on job (lease_id) where status = 'running';
-- Finds suspects among the running jobs of a lease; `SUSPECT_FROM_DEATHS` is the number.
create index job_suspect_idx on job (lease_id) where status = 'running' and interruptions >= 2;
-- Without failed jobs, which are kept longer. Otherwise the pruner would read past all of them to find the others.
create index job_finished_at_idx on job (finished_at) where finished_at is not null and status <> 'failed';
-- Finds the latest failures among many successful jobs.
create index job_unsuccessful_idx on job (status, finished_at, ordinal) where status in ('failed', 'cancelled');
create unique index job_retry_of_key on job (retry_of) where retry_of is not null;
-- Finds payloads with the sealed password of a document. Other jobs fail the first condition, which is cheap.
create index job_sealed_idx on job (left(payload ->> 'sealedPassword', 8), id)
  where name = 'documents.extract' and payload ? 'sealedPassword';

-- The jobs that another job waits for. The pruner keeps the results of those until the other job has ended. No foreign
-- keys, because they would lock the hot job rows. A trigger deletes the rows of a deleted job.
create table job_dependency (
  after_id uuid not null,
  job_id uuid not null,
  -- True once the end of `after_id` has been counted.
  has_ended boolean not null default false,
  constraint job_dependency_pkey primary key (after_id, job_id)
) with (autovacuum_vacuum_scale_factor = 0.01);
create index job_dependency_job_id_idx on job_dependency (job_id);

-- Times of starts that have a rate, by the generic cell rate algorithm (ITU-T I.371). A start moves `next_at` by the
-- interval between two starts. A start is allowed if `next_at` is not further ahead than the burst.
create table start_rate (
  name text collate "C" not null,
  -- Number of starts in `seconds`, evenly spaced after a burst of `burst` starts.
  starts integer not null,
  seconds double precision not null,
  burst integer not null,
  next_at timestamptz not null default now(),
  -- Time at which the last caller in the line of those without a start comes back, see `start_rate_reserve`.
  line_at timestamptz not null default '-infinity',
  constraint start_rate_pkey primary key (name),
  constraint start_rate_starts_check check (starts between 1 and 1000000),
  constraint start_rate_seconds_check check (seconds between 0.001 and 86400),
  constraint start_rate_burst_check check (burst between 1 and starts)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index start_rate_next_at_idx on start_rate (next_at);

-- Numbers of queued, running and waiting jobs per queue. The rows of a queue add up to its numbers. `job_count_add` maintains
-- them.
create table job_count (
  id bigint generated always as identity,
  queue text not null,
  queued integer not null,
  running integer not null,
  -- Jobs that wait for other jobs.
  waiting integer not null default 0,
  constraint job_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
create index job_count_queue_idx on job_count (queue, id);

-- Queue settings that admins control. Workers reread them after a notification, and every few seconds.
create table queue_control (
  queue text not null,
  paused_at timestamptz,
  paused_by integer,
  -- Maximum number of running jobs over all workers. If null, only the workers' slots limit the queue.
  most_running integer,
  constraint queue_control_pkey primary key (queue),
  constraint queue_control_paused_by_fkey foreign key (paused_by) references account (id) on delete set null,
  constraint queue_control_paused_check check (paused_at is not null or paused_by is null),
  constraint queue_control_most_running_check check (most_running between 1 and 1000000)
);
create index queue_control_paused_by_idx on queue_control (paused_by) where paused_by is not null;

-- Outcomes of attempts per time span. These statistics outlive the jobs. Workers add their counts every two seconds, so
-- a worker that is killed loses its latest counts. Histograms use the bounds of `jobs/tallies.ts`: a time counts in the
-- first bucket whose bound it does not exceed. Times above all bounds count in a last bucket.
create table job_tally (
  -- Length of the span in seconds. 0 stands for all time, for counters that only grow.
  span integer not null,
  starts_at timestamptz not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  -- Outcome of the attempts, as in job_finish.
  outcome text collate "C" not null,
  attempts bigint not null,
  run_seconds double precision not null,
  wait_seconds double precision not null,
  runs bigint[] not null,
  waits bigint[] not null,
  constraint job_tally_pkey primary key (span, starts_at, queue, name, outcome)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);

-- Other counters of workers, such as the number of killed children. Workers write them as they write tallies.
create table worker_counter (
  name text not null,
  value bigint not null,
  constraint worker_counter_pkey primary key (name)
) with (fillfactor = 50);

-- Events that streams replay. No foreign key, because it would lock and rewrite the hot job row for every event. A
-- trigger deletes the events together with their job.
create table job_event_row (
  job_id uuid not null,
  seq integer not null,
  kind text not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  -- The attempt that this event starts (from the second attempt on) or requeues; null for all other events.
  attempt integer,
  -- The end of the attempt: outcome, worker, due_at (the earliest start), and code and detail of a failure. It is
  -- separate from `data`, because streams never send it.
  ended jsonb,
  constraint job_event_row_pkey primary key (job_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.01);
-- Finds the attempts of a job among thousands of streamed chunks.
create index job_event_row_attempt_idx on job_event_row (job_id, attempt) where attempt is not null;

-- Log lines of workers about jobs. No foreign key, because each deletion of a job would then search for lines, which
-- hardly any job has. A trigger deletes the lines together with the job's events.
create table job_log (
  id bigint generated always as identity,
  job_id uuid not null,
  attempt integer,
  at timestamptz not null,
  level text not null,
  message text not null,
  data jsonb not null,
  -- True if an HTTP worker has reported the line. Others may contain internal details.
  is_reported boolean not null default false,
  -- Number that the worker has given to the line, so that a repeated report stores it once; null if it gave none.
  n integer,
  constraint job_log_pkey primary key (job_id, id)
) with (autovacuum_vacuum_scale_factor = 0.01);
create unique index job_log_n_key on job_log (job_id, attempt, n) where n is not null;

-- All events of jobs. The `job` row already holds the two most common ones: the start of the first attempt, and the
-- end. Storing these as rows took a fifth of PostgreSQL's work for a short job (40 us of CPU time, 32 without). It also
-- took most of the space that a job left behind. So only other events are stored, and this view adds those two.
--
-- A job starts without events, so the start of its first attempt is event 1. A batch may have events before, and the
-- start is then stored. A finished job gets no more events and its
-- row no longer changes, so its end is the last event.
create view job_event as
  select id as job_id, 1 as seq, 'status' as kind,
    '{"label": "", "total": null, "status": "running", "current": null}'::jsonb as data, started_at as created_at
  from job where attempt > 0 and not exists (select from job_event_row e where e.job_id = job.id and e.seq = 1)
  union all
  select job_id, seq, kind, data, created_at from job_event_row
  union all
  select id, seq, 'status', jsonb_build_object('status', status, 'label', label, 'current', progress_current,
    'total', progress_total), finished_at
  from job where finished_at is not null;
