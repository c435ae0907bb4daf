-- Partitions of tables, each by a month (UTC) of a time, and the default one for what has no month yet: `partitions_keep`
-- makes and drops them. A month goes as a whole, at once, however many rows it has.
create schema partitions;

-- Who did what to whom, when and from where. No foreign keys: events outlive the rows they refer to. The only table of
-- events that has partitions: all unique keys of such a table contain its time, and those of comms_send (`provider_id`),
-- ai_usage (`message_id`) and payment_event (`id`) must hold for all times. Old rows of these are deleted in batches.
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
  -- In the order of the list, which begins with what divides the table: a page reads the months that it is about.
  constraint audit_event_pkey primary key (at, id),
  constraint audit_event_kind_check check (kind ~ '^[a-z_]+\.[a-z_]+$')
) partition by range (at);
-- Each filter of the list, and each with a kind; those of an account in an organization are looked for among its own.
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
