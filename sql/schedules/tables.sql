-- Schedules add a job at each of their times. A schedule is an actor whose next message waits in its mailbox: a job of
-- `schedules.run` for `next_at`. Its run adds the job of that time and the message for the next time, in one transaction.
create table schedule (
  -- The identifier of a built-in schedule, which `tasks/schedules/entries.ts` declares; otherwise a UUID.
  id text collate "C" not null,
  -- Null for a built-in schedule, and for one that was created without authentication.
  owner_id integer,
  is_built_in boolean not null default false,
  name text not null,
  task_name text not null,
  queue_type text not null,
  args jsonb not null,
  -- Either a cron expression, evaluated in `time_zone`, or an interval from `start_at` or `created_at` on.
  cron text,
  every_seconds integer,
  time_zone text not null,
  start_at timestamptz,
  -- No run is at this time or later.
  end_at timestamptz,
  -- `skip`: a time adds no job while the previous job has not ended.
  overlap text not null,
  -- `last`: after an outage, the latest time that passed adds its job late.
  catch_up text not null,
  -- When the schedule was paused; null if it is not paused.
  paused_at timestamptz,
  -- The account that paused the schedule. Null also if the caller was not signed in or the account is gone.
  paused_by integer,
  -- The next time; null while the schedule is paused, and after its last time.
  next_at timestamptz,
  -- The job of the last run. No foreign key, because the pruner deletes the job first.
  last_job_id uuid,
  -- The jobs of the last 20 runs, oldest first.
  recent_job_ids uuid[] not null default '{}',
  last_run_at timestamptz,
  -- The last time that added no job, and the reason.
  last_skipped_at timestamptz,
  last_skip_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint schedule_pkey primary key (id),
  constraint schedule_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint schedule_paused_by_fkey foreign key (paused_by) references account (id) on delete set null,
  constraint schedule_built_in_check check (not is_built_in or owner_id is null),
  constraint schedule_name_check check (length(name) between 1 and 100),
  constraint schedule_timing_check check ((cron is null) <> (every_seconds is null)),
  constraint schedule_every_seconds_check check (every_seconds between 60 and 31536000),
  constraint schedule_period_check check (end_at > start_at),
  constraint schedule_overlap_check check (overlap in ('skip', 'queue')),
  constraint schedule_catch_up_check check (catch_up in ('none', 'last')),
  constraint schedule_paused_check check (paused_at is null or next_at is null),
  constraint schedule_paused_by_check check (paused_by is null or paused_at is not null),
  constraint schedule_last_run_check check ((last_job_id is null) = (last_run_at is null)),
  constraint schedule_last_skip_check check ((last_skipped_at is null) = (last_skip_reason is null)),
  constraint schedule_skip_reason_check check (last_skip_reason in ('late', 'overlap', 'account', 'task', 'quota'))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01);
-- Lists schedules, oldest first, so that the built-in ones come first.
create index schedule_created_at_idx on schedule (created_at, id);
create index schedule_owner_id_idx on schedule (owner_id, created_at, id) where owner_id is not null;
-- Finds schedules whose message was lost.
create index schedule_next_at_idx on schedule (next_at) where next_at is not null;
create index schedule_paused_by_idx on schedule (paused_by) where paused_by is not null;
