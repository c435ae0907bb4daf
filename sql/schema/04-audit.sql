-- Who did what to whom, when and from where. No foreign keys: events outlive the rows they refer to.
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
  constraint audit_event_pkey primary key (id),
  constraint audit_event_kind_check check (kind ~ '^[a-z_]+\.[a-z_]+$')
);
create index audit_event_kind_idx on audit_event (kind, id desc);
create index audit_event_actor_id_idx on audit_event (actor_id, id desc) where actor_id is not null;
create index audit_event_actor_id_kind_idx on audit_event (actor_id, kind, id desc) where actor_id is not null;
create index audit_event_account_id_idx on audit_event (account_id, id desc) where account_id is distinct from actor_id;
create index audit_event_account_id_kind_idx on audit_event (account_id, kind, id desc) where account_id is distinct from actor_id;
create index audit_event_organization_id_idx on audit_event (organization_id, id desc) where organization_id is not null;
create index audit_event_organization_id_kind_idx on audit_event (organization_id, kind, id desc)
  where organization_id is not null;
