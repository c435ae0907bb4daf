-- Webhook endpoints and their deliveries. A row of `webhook_delivery` is written in the transaction of its event. Only
-- `due_at` schedules it: workers look for due rows, and one job per endpoint sends them.

create table webhook_endpoint (
  id bigint generated always as identity,
  -- The account whose events it gets.
  account_id integer not null,
  -- The organization whose admins may also see and stop it; it ends with the account's membership. Null: none.
  organization_id integer,
  -- The API key that added it and whose end deletes it; null: added by a session. No foreign key: `api_key_cleanup`
  -- deletes it.
  api_key_id uuid,
  -- When that key expires; null: never.
  expires_at timestamptz,
  -- Null: the endpoint of job callbacks, each of which has its own URL.
  url text,
  -- The host of the URL, as parsed by URL.
  host text,
  -- When the receiver first echoed a challenge token for this URL; null: not yet, so a lower rate limit applies.
  proved_at timestamptz,
  events text[] not null,
  description text,
  is_active boolean not null default true,
  -- Failed attempts since the last success, the time of the first of them, and the end of the backoff.
  failures integer not null default 0,
  failing_since timestamptz,
  blocked_until timestamptz,
  -- When it was disabled after failing for too long; null: it was not.
  disabled_at timestamptz,
  -- The secret is derived from this and the deployment's key. The previous secret also signs, for a day.
  secret_version integer not null default 1,
  secret_rolled_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  -- A deleted endpoint is invisible. A task deletes its deliveries, and this row last.
  deleted_at timestamptz,
  constraint webhook_endpoint_pkey primary key (id),
  constraint webhook_endpoint_url_check check (length(url) between 8 and 2000),
  constraint webhook_endpoint_host_check check ((url is null) = (host is null)),
  constraint webhook_endpoint_description_check check (length(description) <= 500),
  constraint webhook_endpoint_events_check check ((url is null) = (cardinality(events) = 0)),
  constraint webhook_endpoint_failures_check check ((failures > 0) = (failing_since is not null)),
  constraint webhook_endpoint_disabled_check check (disabled_at is null or not is_active),
  constraint webhook_endpoint_deleted_check check (deleted_at is null or not is_active),
  constraint webhook_endpoint_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index webhook_endpoint_account_id_idx on webhook_endpoint (account_id, id desc);
create index webhook_endpoint_organization_id_idx on webhook_endpoint (organization_id, id desc) where organization_id is not null;
create unique index webhook_endpoint_callbacks_key on webhook_endpoint (account_id) where url is null and deleted_at is null;
create index webhook_endpoint_api_key_id_idx on webhook_endpoint (api_key_id) where api_key_id is not null;
-- Queried every second.
create index webhook_endpoint_expires_at_idx on webhook_endpoint (expires_at) where expires_at is not null and deleted_at is null;
create index webhook_endpoint_deleted_idx on webhook_endpoint (id) where deleted_at is not null;

create table webhook_delivery (
  id bigint generated always as identity,
  endpoint_id bigint not null,
  -- The account of the endpoint and the host of the URL, both set by `webhook_admit`.
  account_id integer not null,
  host text not null,
  -- Lets a receiver recognize duplicates.
  message_id uuid not null default gen_random_uuid(),
  type text not null,
  -- The URL of a callback; null: the URL of its endpoint.
  url text,
  -- The exact bytes to send.
  body text not null,
  -- pending, delivered, failed (all attempts used, or its endpoint is gone)
  status text not null default 'pending',
  -- When the next attempt is due. During an attempt: when to redeliver if no result is recorded. Null once it has
  -- ended.
  due_at timestamptz default now(),
  -- Start of the retry period: the first attempt, however long the delivery waited for it.
  since timestamptz not null default now(),
  attempts integer not null default 0,
  -- The attempts, latest last: the response, or the reason why there was none.
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

-- Number of pending deliveries of an account. Maintained by functions/sums.
create table webhook_pending_sum (
  id bigint generated always as identity,
  account_id integer not null,
  deliveries bigint not null,
  constraint webhook_pending_sum_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index webhook_pending_sum_account_id_idx on webhook_pending_sum (account_id);

-- Deliveries of an account sent to a host, counted per slot of the rate limit's period. Unlogged: losing the rows in a
-- server crash does little harm.
create unlogged table webhook_rate (
  account_id integer not null,
  host text not null,
  slots bigint[] not null,
  counts integer[] not null,
  -- End of the pause that the rate limit imposes; null: none.
  blocked_until timestamptz,
  expires_at timestamptz not null,
  constraint webhook_rate_pkey primary key (account_id, host)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index webhook_rate_expires_at_idx on webhook_rate (expires_at);

-- URLs to notify when a job ends. No foreign key to the job: its end deletes these rows, whatever the outcome.
create table job_callback (
  job_id uuid not null,
  endpoint_id bigint not null,
  url text not null,
  host text not null,
  -- The API key of the request, whose deletion deletes the callback; null: a session.
  api_key_id uuid,
  constraint job_callback_pkey primary key (job_id, endpoint_id, url),
  constraint job_callback_url_check check (length(url) between 8 and 2000),
  constraint job_callback_endpoint_id_fkey foreign key (endpoint_id) references webhook_endpoint (id) on delete cascade
);
create index job_callback_endpoint_id_idx on job_callback (endpoint_id);
create index job_callback_api_key_id_idx on job_callback (api_key_id) where api_key_id is not null;
