-- Monthly partitions (UTC) of tables, each with a default partition for rows whose month has no partition yet.
-- `partitions_maintain` creates and drops them. Dropping a month is one step, however many rows it has.
create schema partitions;

-- Audit events: the actor, the action, its target, the time and the address. No foreign keys: events outlive the rows
-- that they refer to.
--
-- The other event tables have no partitions, because unique keys of a partitioned table must contain the partition key.
-- The keys of comms_send (`provider_id`), ai_usage (`message_id`) and payment_event (`id`) must be unique over all
-- time. Their old rows are deleted in batches.
create table audit_event (
  id bigint generated always as identity,
  at timestamptz not null default now(),
  kind text not null,
  actor_id integer,
  account_id integer,
  organization_id integer,
  address text,
  request_id text,
  data jsonb not null default '{}',
  -- Matches the list order and starts with the partition key, so a page reads only its own months.
  constraint audit_event_pkey primary key (at, id),
  constraint audit_event_kind_check check (kind ~ '^[a-z_]+\.[a-z_]+$')
) partition by range (at);
-- One index per list filter, and one per filter combined with a kind. The account filter within an organization scans
-- that organization's events.
create index audit_event_kind_idx on audit_event (kind, at desc, id desc);
create index audit_event_actor_id_idx on audit_event (actor_id, at desc, id desc) where actor_id is not null;
create index audit_event_actor_id_kind_idx on audit_event (actor_id, kind, at desc, id desc) where actor_id is not null;
create index audit_event_account_id_idx on audit_event (account_id, at desc, id desc) where account_id is distinct from actor_id;
create index audit_event_account_id_kind_idx on audit_event (account_id, kind, at desc, id desc)
  where account_id is distinct from actor_id;
create index audit_event_organization_id_idx on audit_event (organization_id, at desc, id desc) where organization_id is not null;
create index audit_event_organization_id_kind_idx on audit_event (organization_id, kind, at desc, id desc)
  where organization_id is not null;
create table partitions.audit_event_default partition of audit_event default;
