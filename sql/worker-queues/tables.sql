-- Worker queues: queues of callers, whose jobs run on workers of their own. These claim jobs over HTTP, or receive them
-- at an endpoint. A job's name is `QUEUE/TASK`, which no built-in task has.

create table worker_queue (
  -- Unique in the whole service, as the queue of a job, a pause or a metric.
  name text collate "C" not null,
  -- The account or the organization that owns the queue; both null without authentication.
  account_id integer,
  organization_id integer,
  -- The account that added the queue, for its quota; null if it is gone.
  created_by integer,
  description text,
  -- True if jobs of undeclared tasks may be added.
  is_open boolean not null default false,
  -- URL that receives the jobs; null if workers claim them.
  endpoint_url text,
  -- Most jobs that the endpoint handles at a time.
  endpoint_concurrency integer,
  -- The secret that signs requests to the endpoint, sealed (see tasks/platform/keys.ts).
  endpoint_secret text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint worker_queue_pkey primary key (name),
  constraint worker_queue_account_id_fkey foreign key (account_id) references account (id) on delete cascade,
  constraint worker_queue_organization_id_fkey foreign key (organization_id) references organization (id) on delete cascade,
  constraint worker_queue_created_by_fkey foreign key (created_by) references account (id) on delete set null,
  constraint worker_queue_name_check check (name ~ '^[a-z][a-z0-9_-]{0,62}$'),
  constraint worker_queue_owner_check check (account_id is null or organization_id is null),
  constraint worker_queue_description_check check (length(description) <= 500),
  constraint worker_queue_endpoint_check check (
    (endpoint_url is null) = (endpoint_concurrency is null) and (endpoint_url is null) = (endpoint_secret is null)),
  constraint worker_queue_endpoint_url_check check (length(endpoint_url) between 8 and 2000),
  constraint worker_queue_endpoint_concurrency_check check (endpoint_concurrency between 1 and 1000),
  constraint worker_queue_endpoint_secret_check check (endpoint_secret ~ '^[\w-]{8}\.[\w-]+$')
);
create index worker_queue_sealed_idx on worker_queue (left(endpoint_secret, 8), name) where endpoint_secret is not null;
create index worker_queue_account_id_idx on worker_queue (account_id, name) where account_id is not null;
create index worker_queue_created_by_idx on worker_queue (created_by) where created_by is not null;
create index worker_queue_organization_id_idx on worker_queue (organization_id, name) where organization_id is not null;

create table worker_task (
  queue text collate "C" not null,
  name text collate "C" not null,
  -- JSON Schemas (2020-12) of arguments and result; null accepts anything.
  args_schema jsonb,
  result_schema jsonb,
  max_tries integer,
  timeout_seconds integer,
  stall_seconds integer,
  -- Most jobs of the task that run at a time; null for no limit.
  most_running integer,
  -- Paths in arguments and result that the page of a job masks.
  secrets text[] not null default '{}',
  constraint worker_task_pkey primary key (queue, name),
  constraint worker_task_queue_fkey foreign key (queue) references worker_queue (name) on delete cascade,
  constraint worker_task_name_check check (name ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,99}$'),
  constraint worker_task_max_tries_check check (max_tries between 1 and 100),
  constraint worker_task_timeout_check check (timeout_seconds between 1 and 86400),
  constraint worker_task_stall_check check (stall_seconds between 1 and 86400),
  constraint worker_task_most_running_check check (most_running between 1 and 1000),
  constraint worker_task_secrets_check check (cardinality(secrets) <= 50)
);

-- Deliveries of worker queues. `job_deliver` writes them here rather than in graphile-worker's table. Our own workers read
-- that one from its start, and the jobs of a worker queue may wait for its workers forever.
create table worker_delivery (
  id bigint generated always as identity,
  queue text collate "C" not null,
  -- The mailbox, the task and the limit of the job at `first`.
  mailbox text collate "C" not null,
  name text collate "C" not null,
  mailbox_limit integer,
  first bigint not null,
  priority smallint not null,
  constraint worker_delivery_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index worker_delivery_queue_idx on worker_delivery (queue, priority, id);

-- The jobs of recent claims, so that a repeated claim gets the same ones.
create table worker_claim (
  lease_id uuid not null,
  claim_id uuid not null,
  job_ids uuid[] not null,
  created_at timestamptz not null default now(),
  constraint worker_claim_pkey primary key (lease_id, claim_id),
  constraint worker_claim_lease_id_fkey foreign key (lease_id) references worker_lease (id) on delete cascade
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
