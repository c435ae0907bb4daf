-- Organizations, who belongs to them, and who is invited.
--
-- All that changes an organization locks its row first: changes of one organization come one after the other, and what
-- a change reads once it has the lock is what it changes.

create table organization (
  id integer generated always as identity,
  name text not null,
  slug text not null,
  description text,
  is_active boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  constraint organization_pkey primary key (id),
  constraint organization_slug_key unique (slug),
  constraint organization_slug_check check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  constraint organization_name_check check (length(name) between 1 and 200),
  constraint organization_description_check check (length(description) between 1 and 2000)
);

create table organization_member (
  id integer generated always as identity,
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
create index organization_member_organization_id_idx on organization_member (organization_id, id);
create index organization_member_user_id_idx on organization_member (user_id, organization_id);
create index organization_member_owner_idx on organization_member (organization_id) where role = 'owner';

-- Its token is derived from the id and the deployment's key, and is not stored. A pending invite past its time reads as
-- none; it is marked as expired when somebody next comes across it.
create table organization_invite (
  id integer generated always as identity,
  organization_id integer not null,
  email text not null,
  role text not null,
  status text not null default 'pending',
  invited_by integer,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  constraint organization_invite_pkey primary key (id),
  constraint organization_invite_email_check check (email = lower(email) and length(email) between 3 and 320),
  constraint organization_invite_role_check check (role in ('owner', 'admin', 'member')),
  constraint organization_invite_status_check check (status in ('pending', 'accepted', 'revoked', 'expired')),
  constraint organization_invite_accepted_at_check check ((status = 'accepted') = (accepted_at is not null)),
  constraint organization_invite_organization_id_fkey foreign key (organization_id) references organization (id) on delete cascade,
  constraint organization_invite_invited_by_fkey foreign key (invited_by) references account (id) on delete set null
);
create unique index organization_invite_pending_key on organization_invite (organization_id, email) where status = 'pending';
create index organization_invite_organization_id_idx on organization_invite (organization_id, id);
create index organization_invite_email_idx on organization_invite (email) where status = 'pending';
create index organization_invite_invited_by_idx on organization_invite (invited_by) where invited_by is not null;

-- What clients see.
create function organization_json(o organization) returns json language sql stable parallel safe
  return json_build_object('id', o.id, 'name', o.name, 'slug', o.slug, 'description', o.description,
    'is_active', o.is_active, 'created_at', iso(o.created_at), 'updated_at', iso(o.updated_at));

create function member_json(m organization_member) returns json language sql stable parallel safe
  return json_build_object('id', m.id, 'organization_id', m.organization_id, 'user_id', m.user_id, 'role', m.role,
    'joined_at', iso(m.joined_at));

-- Without its token, which only the edge can make.
create function invite_json(i organization_invite) returns json language sql stable parallel safe
  return json_build_object('id', i.id, 'organization_id', i.organization_id, 'email', i.email, 'role', i.role,
    'status', i.status, 'created_at', iso(i.created_at), 'expires_at', iso(i.expires_at));

-- Locks an organization for a change, and answers the caller's role in it, null for somebody who has none; no row when
-- there is no such organization.
create function organization_lock(id integer, caller integer) returns table (role text) language plpgsql as $$
#variable_conflict use_column
begin
  perform from organization o where o.id = organization_lock.id for update;
  if not found then return; end if;
  -- A statement of its own: it sees what the transaction has left that the lock waited for.
  return query select (select m.role from organization_member m
    where m.organization_id = organization_lock.id and m.user_id = caller);
end $$;

-- An organization keeps an owner, whatever runs at once. One that is going takes its members with it: its row is gone
-- before theirs, and there is nothing left to guard.
create function organization_owner() returns trigger language plpgsql as $$
begin
  perform from organization where id = old.organization_id for update;
  if not found then return null; end if;
  -- A statement of its own, like above.
  if not exists (select from organization_member where organization_id = old.organization_id and role = 'owner') then
    raise exception 'An organization keeps an owner' using errcode = 'check_violation', constraint = 'organization_owner';
  end if;
  return null;
end $$;
create trigger organization_owner_update after update of role, organization_id on organization_member
  for each row when (old.role = 'owner' and (new.role <> 'owner' or new.organization_id <> old.organization_id))
  execute function organization_owner();
create trigger organization_owner_delete after delete on organization_member
  for each row when (old.role = 'owner')
  execute function organization_owner();

-- Invites of an address and its registration come one after the other: either the invite finds the account, or the
-- account finds the invite. Taken before any organization is locked.
create function invite_address_lock(email text) returns void language sql
  as $$ select pg_advisory_xact_lock(hashtextextended('millrace.invite:' || email, 0)) $$;

-- Makes a new account a member wherever its address is invited; answers the invites that this has used up.
create function invites_accept(account_id integer, address text)
returns table (invite_id integer, organization_id integer, role text) language plpgsql as $$
#variable_conflict use_column
begin
  perform invite_address_lock(address);
  perform from organization o where o.id in (
    select i.organization_id from organization_invite i where i.email = address and i.status = 'pending')
  order by o.id for update;
  return query
  with accepted as (
    update organization_invite i set status = 'accepted', accepted_at = now()
    where i.email = address and i.status = 'pending' and i.expires_at > now()
    returning i.id, i.organization_id, i.role
  ), joined as (
    insert into organization_member (organization_id, user_id, role)
    select a.organization_id, invites_accept.account_id, a.role from accepted a
  )
  select a.id, a.organization_id, a.role from accepted a order by a.id;
end $$;

-- Deletes an account. What it alone owned passes to the highest-ranked, longest-standing other member, or goes when
-- there is none. Answers what became of it: `inherited` [{organization_id, heir_id}], `deleted` [{organization_id,
-- slug}]; no row when there is no such account.
create function account_delete(id integer)
returns table (email text, inherited json, deleted json) language plpgsql as $$
#variable_conflict use_column
begin
  -- Organizations before accounts, as in every change; then those that it was added to before its row was locked.
  for pass in 1..2 loop
    perform from organization o where o.id in (
      select m.organization_id from organization_member m where m.user_id = account_delete.id)
    order by o.id for update;
    perform from account a where a.id = account_delete.id for update;
  end loop;
  with heir as (
    select distinct on (m.organization_id) m.id
    from organization_member own join organization_member m on m.organization_id = own.organization_id and m.id <> own.id
    where own.user_id = account_delete.id and own.role = 'owner' and not exists (
      select from organization_member other
      where other.organization_id = own.organization_id and other.role = 'owner' and other.id <> own.id)
    order by m.organization_id, array_position(array['admin', 'member'], m.role), m.joined_at, m.id
  ), promoted as (
    update organization_member m set role = 'owner' from heir where m.id = heir.id
    returning m.organization_id, m.user_id as heir_id
  )
  select coalesce(json_agg(p order by p.organization_id), '[]') into inherited from promoted p;
  with orphaned as (
    delete from organization o using organization_member own
    where own.organization_id = o.id and own.user_id = account_delete.id and own.role = 'owner' and not exists (
      select from organization_member other where other.organization_id = o.id and other.id <> own.id)
    returning o.id as organization_id, o.slug
  )
  select coalesce(json_agg(o order by o.organization_id), '[]') into deleted from orphaned o;
  return query
  with gone as (delete from account a where a.id = account_delete.id returning a.email)
  select gone.email, account_delete.inherited, account_delete.deleted from gone;
end $$;
