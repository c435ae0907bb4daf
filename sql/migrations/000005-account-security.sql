-- What keeps accounts safe: forced ends of sessions, mailed tokens, failed logins, request limits, the audit trail.

-- An account as clients see it.
create function account_json(a account) returns json language sql stable parallel safe
  return json_build_object('id', a.id, 'email', a.email, 'full_name', a.full_name, 'is_active', a.is_active,
    'is_verified', a.is_verified, 'role', a.role, 'last_login', iso(a.last_login), 'created_at', iso(a.created_at),
    'updated_at', iso(a.updated_at));

-- Revoked, a session can no longer be refreshed; ended, its access tokens are refused too. `address` and `user_agent`
-- are what its sign-in came from.
alter table session
  add column ended_at timestamptz,
  add column address text,
  add column user_agent text,
  add constraint session_ended_check check (ended_at is null or revoked_at is not null);

-- Tokens that were mailed. They are derived from the id and the deployment's key, so that the task that mails one
-- needs no more than its row; what is stored can't be used. One that was used is kept until it would have run out: a
-- task that is repeated after its mail was read must not bring it back.
create table account_token (
  id uuid not null,
  account_id integer not null,
  kind text not null,
  digest bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint account_token_pkey primary key (id),
  constraint account_token_digest_key unique (digest),
  constraint account_token_kind_check check (kind in ('reset', 'verify')),
  constraint account_token_digest_check check (length(digest) = 32),
  constraint account_token_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index account_token_account_id_idx on account_token (account_id, kind);
create index account_token_expires_at_idx on account_token (expires_at);

-- Failed logins by address, known or not: an address that has no account is locked like any other.
create table login_failure (
  subject bytea not null,
  failures integer not null,
  failed_at timestamptz not null,
  locked_until timestamptz,
  constraint login_failure_pkey primary key (subject),
  constraint login_failure_subject_check check (length(subject) = 32),
  constraint login_failure_failures_check check (failures > 0)
);
create index login_failure_failed_at_idx on login_failure (failed_at);

-- How a login whose password was checked ends: `ok`, `wrong`, or `locked`. Decided under the row's lock: of any number
-- of guesses at once, `most` in a row are told that they were wrong, and none is told that it was right after that.
create function login_end(subject bytea, matches boolean, most integer, lock interval)
returns text language plpgsql as $$
#variable_conflict use_column
declare
  known login_failure;
begin
  select * into known from login_failure f where f.subject = login_end.subject for update;
  -- What is locked does the same work for the right password as for a wrong one.
  if known.locked_until > clock_timestamp() then return 'locked'; end if;
  if matches then
    delete from login_failure f where f.subject = login_end.subject;
    return 'ok';
  end if;
  insert into login_failure as f (subject, failures, failed_at) values (login_end.subject, 1, clock_timestamp())
  on conflict on constraint login_failure_pkey do update set
    -- A lock that has run out, or failures that are as old as one, no longer count.
    failures = case when coalesce(f.locked_until, f.failed_at + lock) <= clock_timestamp() then 1 else f.failures + 1 end,
    locked_until = case when f.locked_until > clock_timestamp() then f.locked_until end,
    failed_at = case when f.locked_until > clock_timestamp() then f.failed_at else clock_timestamp() end
  returning * into known;
  -- Locked by one that was the first failure, too, and that the look above could not see yet.
  if known.locked_until is not null then return 'locked'; end if;
  if known.failures >= most then
    update login_failure f set locked_until = clock_timestamp() + lock where f.subject = login_end.subject;
    return 'wrong, now locked';
  end if;
  return 'wrong';
end $$;

-- Requests of a client in a window. Losing them in a crash of the server harms nobody, so they are not logged.
create unlogged table request_limit (
  name text not null,
  subject text not null,
  hits timestamptz[] not null,
  expires_at timestamptz not null,
  constraint request_limit_pkey primary key (name, subject)
);
create index request_limit_expires_at_idx on request_limit (expires_at);

-- Counts a request, of which `most` are let through in any `span`; answers 0, or the ms until the next one may come.
create function request_limit_take(name text, subject text, most integer, span interval)
returns integer language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz;
  recent timestamptz[];
begin
  loop
    insert into request_limit (name, subject, hits, expires_at)
    values (request_limit_take.name, request_limit_take.subject, '{}', clock_timestamp() + span)
    on conflict on constraint request_limit_pkey do nothing;
    select hits into recent from request_limit r
    where r.name = request_limit_take.name and r.subject = request_limit_take.subject for update;
    -- Housekeeping may have removed the row in between; what is not there can't be counted on.
    exit when found;
  end loop;
  at := clock_timestamp();
  select coalesce(array_agg(hit order by hit), '{}') into recent from unnest(recent) hit where hit > at - span;
  if cardinality(recent) >= most then
    return greatest(1, ceil(extract(epoch from recent[cardinality(recent) - most + 1] + span - at) * 1000));
  end if;
  update request_limit r set hits = recent || at, expires_at = at + span
  where r.name = request_limit_take.name and r.subject = request_limit_take.subject;
  return 0;
end $$;

-- Who did what to whom, when and from where. No foreign keys: it outlives what it tells of.
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
create index audit_event_account_id_idx on audit_event (account_id, id desc) where account_id is not null;
create index audit_event_actor_id_idx on audit_event (actor_id, id desc) where actor_id is not null;
create index audit_event_organization_id_idx on audit_event (organization_id, id desc) where organization_id is not null;

create function audit_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'The audit trail is append-only' using errcode = 'insufficient_privilege';
end $$;
create trigger audit_append_only before update or delete or truncate on audit_event
  for each statement execute function audit_append_only();

-- There is always somebody who can administrate: the last active admin stays one, whatever runs at once.
create function account_last_admin() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7236501146);
  -- A statement of its own: it sees what the transaction has left that the lock waited for.
  if not exists (select from account where role = 'admin' and is_active) then
    raise exception 'The last active admin has to stay' using errcode = 'check_violation', constraint = 'account_last_admin';
  end if;
  return null;
end $$;
create trigger account_last_admin_update after update of role, is_active on account
  for each row when (old.role = 'admin' and old.is_active and (new.role <> 'admin' or not new.is_active))
  execute function account_last_admin();
create trigger account_last_admin_delete after delete on account
  for each row when (old.role = 'admin' and old.is_active)
  execute function account_last_admin();

-- Exchanges a refresh token for its successor, in the same family and with a fresh lifetime. A token that was
-- exchanged before is a replay and revokes the family, whose access tokens end with it; it answers no row, like an
-- unknown, expired or revoked one. Not a replay is the very same exchange again while its successor is unused: the
-- successor is then derived from the client's Idempotency-Key, which only the client that lost the answer can know.
drop function session_refresh(bytea, bytea, interval);
create function session_refresh(presented bytea, successor bytea, lifetime interval)
returns table (account_id integer, session_id uuid, role text, replayed boolean) language plpgsql as $$
#variable_conflict use_column
declare
  family session;
  token refresh_token;
begin
  select s.* into family from session s join refresh_token t on t.session_id = s.id
  where t.digest = presented for update of s;
  if not found or family.ended_at is not null then return; end if;
  -- Read under the family's lock, so that of two exchanges at once the second sees the first.
  select * into token from refresh_token where digest = presented;
  if token.rotated_at is null then
    if token.expires_at <= now() then return; end if;
  elsif not exists (select from refresh_token t where t.digest = successor and t.session_id = family.id
      and t.rotated_at is null and t.expires_at > now()) then
    -- After a sign-out, too: its access tokens are still good, and somebody else has had the refresh token.
    update session set revoked_at = coalesce(revoked_at, now()), ended_at = now() where id = family.id;
    return query select family.account_id, family.id, '', true;
    return;
  end if;
  if family.revoked_at is not null then return; end if;
  if not exists (select from account where id = family.account_id and is_active) then return; end if;
  if token.rotated_at is null then
    update refresh_token set rotated_at = now() where digest = presented;
    insert into refresh_token (digest, session_id, expires_at) values (successor, family.id, now() + lifetime);
  end if;
  return query select a.id, family.id, a.role, false from account a where a.id = family.account_id;
end $$;
