-- Webhook endpoints and their deliveries. The transaction of an event writes its rows in `webhook_delivery`. Only
-- `due_at` schedules a delivery. Workers look for due rows, and one job per endpoint sends them.

create table webhook_endpoint (
  id bigint generated always as identity,
  -- The account whose events the endpoint receives. Null for an endpoint of the service, which receives the events of
  -- all accounts and belongs to the admins.
  account_id integer,
  -- The organization whose admins may also see and stop the endpoint. The endpoint is deleted when the account's
  -- membership ends. Null if there is none.
  organization_id integer,
  -- The API key that added the endpoint; null if a session did. When the key is deleted, so is the endpoint. No foreign
  -- key, because `api_key_cleanup` deletes the endpoint.
  api_key_id uuid,
  -- When the API key expires; null if it never does.
  expires_at timestamptz,
  -- Null for the endpoint of job callbacks, each of which has its own URL.
  url text,
  -- Host of the URL, as the URL class parses it.
  host text,
  -- When the receiver first echoed a challenge token for this URL. While null, a lower rate limit applies.
  proved_at timestamptz,
  events text[] not null,
  description text,
  is_active boolean not null default true,
  -- Number of failed attempts since the last success, the time of the first of them, and the end of the backoff.
  failures integer not null default 0,
  failing_since timestamptz,
  blocked_until timestamptz,
  -- When the pause ends that the receiver asked for with `Retry-After`; null if it never did.
  paused_until timestamptz,
  -- When the endpoint was disabled because it kept failing; null while enabled.
  disabled_at timestamptz,
  -- The secret that signs deliveries, sealed (see tasks/platform/keys.ts), and the number of secrets so far. For a day
  -- after a change, the previous secret also signs.
  secret text not null,
  previous_secret text,
  secret_version integer not null default 1,
  secret_rolled_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  -- When the endpoint was deleted. It is then invisible. A task deletes its deliveries and finally this row.
  deleted_at timestamptz,
  constraint webhook_endpoint_pkey primary key (id),
  constraint webhook_endpoint_url_check check (length(url) between 8 and 2000),
  constraint webhook_endpoint_host_check check ((url is null) = (host is null)),
  constraint webhook_endpoint_description_check check (length(description) <= 500),
  constraint webhook_endpoint_events_check check ((url is null) = (cardinality(events) = 0)),
  constraint webhook_endpoint_service_check check (account_id is not null or (url is not null and organization_id is null)),
  constraint webhook_endpoint_secret_check check (secret ~ '^[\w-]{8}\.[\w-]+$'),
  constraint webhook_endpoint_previous_secret_check check (previous_secret ~ '^[\w-]{8}\.[\w-]+$'),
  constraint webhook_endpoint_failures_check check ((failures > 0) = (failing_since is not null)),
  constraint webhook_endpoint_disabled_check check (disabled_at is null or not is_active),
  constraint webhook_endpoint_deleted_check check (deleted_at is null or not is_active),
  constraint webhook_endpoint_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index webhook_endpoint_account_id_idx on webhook_endpoint (account_id, id desc);
create index webhook_endpoint_service_idx on webhook_endpoint (id desc) where account_id is null;
create index webhook_endpoint_organization_id_idx on webhook_endpoint (organization_id, id desc) where organization_id is not null;
create unique index webhook_endpoint_callbacks_key on webhook_endpoint (account_id) where url is null and deleted_at is null;
create index webhook_endpoint_api_key_id_idx on webhook_endpoint (api_key_id) where api_key_id is not null;
-- Used by a query that runs every second.
create index webhook_endpoint_expires_at_idx on webhook_endpoint (expires_at) where expires_at is not null and deleted_at is null;
create index webhook_endpoint_sealed_idx on webhook_endpoint (left(secret, 8), id);
create index webhook_endpoint_previous_sealed_idx on webhook_endpoint (left(previous_secret, 8), id) where previous_secret is not null;
create index webhook_endpoint_deleted_idx on webhook_endpoint (id) where deleted_at is not null;

create table webhook_delivery (
  id bigint generated always as identity,
  endpoint_id bigint not null,
  -- The endpoint's account, 0 for the service, and the host of the URL. `webhook_admit` sets both.
  account_id integer not null,
  host text not null,
  -- Id by which a receiver can recognize duplicates.
  message_id uuid not null default gen_random_uuid(),
  type text not null,
  -- URL of a callback; null if the delivery uses the endpoint's URL.
  url text,
  -- The exact bytes to send as the request body.
  body text not null,
  -- pending, delivered, or failed (all attempts were used, or the endpoint is gone)
  status text not null default 'pending',
  -- When the next attempt is due. During an attempt, when to redeliver if its result is not recorded. Null once the
  -- delivery is done or has failed.
  due_at timestamptz default now(),
  -- Start of the retry period: the time of the first attempt, however late that was.
  since timestamptz not null default now(),
  attempts integer not null default 0,
  -- Results of the attempts, latest last: the response, or the reason for a missing one.
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

-- Number of pending deliveries per account, 0 for the service. Maintained by sums/functions.
create table webhook_pending_sum (
  id bigint generated always as identity,
  account_id integer not null,
  deliveries bigint not null,
  constraint webhook_pending_sum_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index webhook_pending_sum_account_id_idx on webhook_pending_sum (account_id);

-- Number of deliveries of an account, 0 for the service, to a host, per slot of the rate limit's period. Unlogged: losing the rows in a
-- server crash does little harm.
create unlogged table webhook_rate (
  account_id integer not null,
  host text not null,
  slots bigint[] not null,
  counts integer[] not null,
  -- When the pause imposed by the rate limit ends; null if there is no pause.
  blocked_until timestamptz,
  expires_at timestamptz not null,
  constraint webhook_rate_pkey primary key (account_id, host)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index webhook_rate_expires_at_idx on webhook_rate (expires_at);

-- URLs to notify when a job ends. There is no foreign key to the job: the end of the job deletes these rows, whatever
-- the outcome.
create table job_callback (
  job_id uuid not null,
  endpoint_id bigint not null,
  url text not null,
  host text not null,
  -- The API key of the request; null for a session. Deleting the key deletes the callback.
  api_key_id uuid,
  constraint job_callback_pkey primary key (job_id, endpoint_id, url),
  constraint job_callback_url_check check (length(url) between 8 and 2000),
  constraint job_callback_endpoint_id_fkey foreign key (endpoint_id) references webhook_endpoint (id) on delete cascade
);
create index job_callback_endpoint_id_idx on job_callback (endpoint_id);
create index job_callback_api_key_id_idx on job_callback (api_key_id) where api_key_id is not null;
