-- Organizations, their members and invites. Every change to an organization locks its row first. Changes to one
-- organization therefore run one after another, and data that was read under the lock is still current when the change
-- writes.

create table organization (
  id integer generated always as identity,
  name text not null,
  -- Null once the organization is deleted.
  slug text,
  description text,
  is_active boolean not null default true,
  -- The account whose quota includes the organization. Null if the creator was not signed in or its account is gone.
  created_by integer,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  -- When the organization was deleted. It is then invisible. A task deletes its members and invites, and finally this
  -- row.
  deleted_at timestamptz,
  constraint organization_pkey primary key (id),
  constraint organization_slug_key unique (slug),
  constraint organization_slug_check check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  constraint organization_name_check check (length(name) between 1 and 200),
  constraint organization_description_check check (length(description) between 1 and 2000),
  constraint organization_created_by_fkey foreign key (created_by) references account (id) on delete set null,
  constraint organization_deleted_check check ((deleted_at is null) = (slug is not null))
);
create index organization_deleted_idx on organization (id) where deleted_at is not null;
create index organization_created_by_idx on organization (created_by) where created_by is not null;
create index organization_listed_idx on organization (id) where deleted_at is null;

create table organization_member (
  id bigint generated always as identity,
  organization_id integer not null,
  user_id integer not null,
  role text not null,
  joined_at timestamptz not null default now(),
  constraint organization_member_pkey primary key (id),
  constraint organization_member_organization_id_user_id_key unique (organization_id, user_id),
  constraint organization_member_role_check check (role in ('owner', 'admin', 'member')),
  constraint organization_member_organization_id_fkey foreign key (organization_id) references organization (id) on delete cascade,
  constraint organization_member_user_id_fkey foreign key (user_id) references account (id) on delete cascade
);
create index organization_member_organization_id_idx on organization_member (organization_id, id, user_id);
create index organization_member_user_id_idx on organization_member (user_id, organization_id);
create index organization_member_owner_idx on organization_member (organization_id) where role = 'owner';

-- Invites to organizations. The token is derived from the id and the deployment's key, and is not stored. An invite
-- past `expires_at` no longer counts as pending; its next use marks the row as expired.
create table organization_invite (
  id bigint generated always as identity,
  organization_id integer not null,
  email text not null,
  role text not null,
  status text not null default 'pending',
  invited_by integer,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  constraint organization_invite_pkey primary key (id),
  constraint organization_invite_email_check check (email = lower(email) and length(email) between 3 and 254),
  constraint organization_invite_role_check check (role in ('owner', 'admin', 'member')),
  constraint organization_invite_status_check check (status in ('pending', 'accepted', 'revoked', 'expired')),
  constraint organization_invite_accepted_at_check check ((status = 'accepted') = (accepted_at is not null)),
  constraint organization_invite_organization_id_fkey foreign key (organization_id) references organization (id) on delete cascade,
  constraint organization_invite_invited_by_fkey foreign key (invited_by) references account (id) on delete set null
);
create unique index organization_invite_pending_key on organization_invite (organization_id, email) where status = 'pending';
create index organization_invite_organization_id_idx on organization_invite (organization_id);
create index organization_invite_listed_idx on organization_invite (organization_id, id, expires_at) where status = 'pending';
create index organization_invite_email_idx on organization_invite (email) where status = 'pending';
create index organization_invite_expires_at_idx on organization_invite (expires_at);
create index organization_invite_invited_by_idx on organization_invite (invited_by) where invited_by is not null;
