-- Where callers want to be told of what happens to their things, and what they were told. A row of `webhook_delivery` is
-- written in the transaction of what it tells of, and its `due_at` is all that schedules it: workers look for due rows, and
-- a job for each endpoint sends them.

create table webhook_endpoint (
  id bigint generated always as identity,
  -- Whose events it gets.
  account_id integer not null,
  -- Whose admins see and stop it, too: it ends with the account's membership.
  organization_id integer,
  -- Null: that of the callbacks of jobs, each of which has a URL of its own.
  url text,
  events text[] not null,
  description text,
  is_active boolean not null default true,
  -- Attempts that have failed since the last one that did not, since when, and until when none is made.
  failures integer not null default 0,
  failing_since timestamptz,
  rests_until timestamptz,
  -- When it was deactivated because nothing arrived for too long.
  switched_off_at timestamptz,
  -- Its secret is derived from this and the deployment's key. The previous one signs, too, for a day.
  secret_version integer not null default 1,
  secret_rolled_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  -- Nobody sees it any more; a task deletes its deliveries, and its row last.
  deleted_at timestamptz,
  constraint webhook_endpoint_pkey primary key (id),
  constraint webhook_endpoint_url_check check (length(url) between 8 and 2000),
  constraint webhook_endpoint_description_check check (length(description) <= 500),
  constraint webhook_endpoint_events_check check ((url is null) = (cardinality(events) = 0)),
  constraint webhook_endpoint_failures_check check ((failures > 0) = (failing_since is not null)),
  constraint webhook_endpoint_switched_off_check check (switched_off_at is null or not is_active),
  constraint webhook_endpoint_deleted_check check (deleted_at is null or not is_active),
  constraint webhook_endpoint_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index webhook_endpoint_account_id_idx on webhook_endpoint (account_id, id desc);
create index webhook_endpoint_organization_id_idx on webhook_endpoint (organization_id, id desc) where organization_id is not null;
create unique index webhook_endpoint_callbacks_key on webhook_endpoint (account_id) where url is null and deleted_at is null;
create index webhook_endpoint_deleted_idx on webhook_endpoint (id) where deleted_at is not null;

create table webhook_delivery (
  id bigint generated always as identity,
  endpoint_id bigint not null,
  -- By which a receiver recognizes a repetition.
  message_id uuid not null default gen_random_uuid(),
  type text not null,
  -- The URL of a callback; null: that of its endpoint.
  url text,
  -- What is sent, to the byte.
  body text not null,
  -- pending, delivered, failed (for a day, or its endpoint is gone)
  status text not null default 'pending',
  -- When it is sent next: while it is being sent, when it is sent again if that is never heard of.
  due_at timestamptz default now(),
  -- From when on its day counts: from its first attempt, for which it may have waited longer than that.
  since timestamptz not null default now(),
  attempts integer not null default 0,
  -- The attempts, the latest one last: what was answered, or why nothing was.
  answers jsonb not null default '[]',
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint webhook_delivery_pkey primary key (id),
  constraint webhook_delivery_status_check check (status in ('pending', 'delivered', 'failed')),
  constraint webhook_delivery_due_check check ((status = 'pending') = (due_at is not null)),
  constraint webhook_delivery_ended_check check ((status = 'pending') = (ended_at is null)),
  constraint webhook_delivery_endpoint_id_fkey foreign key (endpoint_id) references webhook_endpoint (id) on delete cascade
) with (autovacuum_vacuum_scale_factor = 0.02);
create index webhook_delivery_due_idx on webhook_delivery (endpoint_id, due_at, id) where due_at is not null;
create index webhook_delivery_endpoint_id_idx on webhook_delivery (endpoint_id, id desc);
create index webhook_delivery_endpoint_id_status_idx on webhook_delivery (endpoint_id, status, id desc);
create index webhook_delivery_created_at_idx on webhook_delivery (created_at);

-- Whom a job tells of its end. No foreign key to the job: its end takes these rows along, whatever end that is.
create table job_callback (
  job_id uuid not null,
  endpoint_id bigint not null,
  url text not null,
  constraint job_callback_pkey primary key (job_id, endpoint_id, url),
  constraint job_callback_url_check check (length(url) between 8 and 2000),
  constraint job_callback_endpoint_id_fkey foreign key (endpoint_id) references webhook_endpoint (id) on delete cascade
);
create index job_callback_endpoint_id_idx on job_callback (endpoint_id);
