-- Where callers want to be told of what happens to their things, and what they were told. A row of `webhook_delivery` is
-- written in the transaction of what it tells of, and its `due_at` is all that schedules it: workers look for due rows, and
-- a job for each endpoint sends them.

create table webhook_endpoint (
  id bigint generated always as identity,
  -- Whose events it gets.
  account_id integer not null,
  -- Whose admins see and stop it, too: it ends with the account's membership.
  organization_id integer,
  -- The API key that added it, which takes it along when it ends; null: a session did. No foreign key: `api_key_ended` ends it.
  api_key_id uuid,
  -- When that key expires.
  expires_at timestamptz,
  -- Null: that of the callbacks of jobs, each of which has a URL of its own.
  url text,
  -- The host of the URL, as URLs are parsed.
  host text,
  -- When its receiver first echoed the token of a challenge for this URL; null: not yet, so that few deliveries are sent.
  proved_at timestamptz,
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
  constraint webhook_endpoint_host_check check ((url is null) = (host is null)),
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
create index webhook_endpoint_api_key_id_idx on webhook_endpoint (api_key_id) where api_key_id is not null;
-- Looked through every second.
create index webhook_endpoint_expires_at_idx on webhook_endpoint (expires_at) where expires_at is not null and deleted_at is null;
create index webhook_endpoint_deleted_idx on webhook_endpoint (id) where deleted_at is not null;

create table webhook_delivery (
  id bigint generated always as identity,
  endpoint_id bigint not null,
  -- The account of the endpoint, and the host of the URL; `webhook_admitted` fills them in.
  account_id integer not null,
  host text not null,
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
create index webhook_delivery_due_idx on webhook_delivery (endpoint_id, host, due_at, id) where due_at is not null;
create index webhook_delivery_endpoint_id_idx on webhook_delivery (endpoint_id, id desc);
create index webhook_delivery_endpoint_id_status_idx on webhook_delivery (endpoint_id, status, id desc);
create index webhook_delivery_created_at_idx on webhook_delivery (created_at);

-- How many deliveries of an account are pending. Kept as functions/sums says.
create table webhook_pending_sum (
  id bigint generated always as identity,
  account_id integer not null,
  deliveries bigint not null,
  constraint webhook_pending_sum_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index webhook_pending_sum_account_id_idx on webhook_pending_sum (account_id);

-- How many deliveries of an account were sent to a host, in slots of its period. Unlogged: losing them in a crash of the server
-- does little harm.
create unlogged table webhook_rate (
  account_id integer not null,
  host text not null,
  slots bigint[] not null,
  counts integer[] not null,
  -- Until when nothing is sent; null: something may be.
  rests_until timestamptz,
  expires_at timestamptz not null,
  constraint webhook_rate_pkey primary key (account_id, host)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index webhook_rate_expires_at_idx on webhook_rate (expires_at);

-- Whom a job tells of its end. No foreign key to the job: its end takes these rows along, whatever end that is.
create table job_callback (
  job_id uuid not null,
  endpoint_id bigint not null,
  url text not null,
  host text not null,
  -- The API key of the request, which takes it along when it is deleted.
  api_key_id uuid,
  constraint job_callback_pkey primary key (job_id, endpoint_id, url),
  constraint job_callback_url_check check (length(url) between 8 and 2000),
  constraint job_callback_endpoint_id_fkey foreign key (endpoint_id) references webhook_endpoint (id) on delete cascade
);
create index job_callback_endpoint_id_idx on job_callback (endpoint_id);
create index job_callback_api_key_id_idx on job_callback (api_key_id) where api_key_id is not null;
