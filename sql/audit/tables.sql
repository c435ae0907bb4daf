-- Monthly partitions (UTC) of tables. Each table also has a default partition for months without one.
-- `partitions_maintain` creates and drops partitions. Dropping a month is a single step, however many rows it has.
create schema partitions;

-- Audit events: the actor, the action, its target, the time and the address. No foreign keys, because events outlive
-- the rows that they refer to.
--
-- Other event tables are not partitioned, because unique keys of a partitioned table must contain the partition key.
-- The keys of comms_send (`provider_id`), ai_usage (`message_id`) and payment_event (`id`) must be unique over all
-- time. Old rows of those tables are deleted in batches.
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
  -- The key has the order of the list and starts with the partition key, so a page reads only the months that it shows.
  constraint audit_event_pkey primary key (at, id),
  constraint audit_event_kind_check check (kind ~ '^[a-z_]+\.[a-z_]+$')
) partition by range (at);
-- Each list filter has an index, and so does each combination of a filter with a kind. An exception is the account
-- filter within an organization, which scans that organization's events.
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
