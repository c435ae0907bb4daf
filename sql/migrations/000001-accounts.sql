-- Accounts and their sessions. A session is a family of refresh tokens: each token is used once and names
-- its successor's family, so a replay can revoke them all by revoking the one session row.

create function iso(at timestamptz) returns text
  language sql immutable parallel safe
  return to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

create table account (
  id integer generated always as identity,
  email text not null,
  password_hash text not null,
  full_name text,
  role text not null default 'user',
  is_active boolean not null default true,
  is_verified boolean not null default false,
  last_login timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  constraint account_pkey primary key (id),
  constraint account_email_key unique (email),
  constraint account_email_check check (email = lower(email) and length(email) between 3 and 320),
  constraint account_full_name_check check (length(full_name) <= 200),
  constraint account_role_check check (role in ('user', 'moderator', 'admin'))
);

create table session (
  id uuid not null,
  account_id integer not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  constraint session_pkey primary key (id),
  constraint session_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index session_account_id_idx on session (account_id);

create table refresh_token (
  digest bytea not null,
  session_id uuid not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  rotated_at timestamptz,
  constraint refresh_token_pkey primary key (digest),
  constraint refresh_token_digest_check check (length(digest) = 32),
  constraint refresh_token_session_id_fkey foreign key (session_id) references session (id) on delete cascade
);
create index refresh_token_session_id_idx on refresh_token (session_id);
create index refresh_token_expires_at_idx on refresh_token (expires_at);
-- One token of a family is current; every other one has been rotated.
create unique index refresh_token_session_id_current_key on refresh_token (session_id) where rotated_at is null;

-- Exchanges a refresh token for its successor, in the same family and with a fresh lifetime. A token that was
-- exchanged before is a replay: it revokes the family and answers no row, like an unknown, expired or revoked one.
create function session_refresh(presented bytea, successor bytea, lifetime interval)
returns table (account_id integer, session_id uuid, role text) language plpgsql as $$
#variable_conflict use_column
declare
  family session;
  token refresh_token;
begin
  select s.* into family from session s join refresh_token t on t.session_id = s.id
  where t.digest = presented for update of s;
  if not found or family.revoked_at is not null then return; end if;
  -- Read under the family's lock, so that of two exchanges at once the second sees the first.
  select * into token from refresh_token where digest = presented;
  if token.rotated_at is not null then
    update session set revoked_at = now() where id = family.id;
    return;
  end if;
  if token.expires_at <= now()
     or not exists (select from account where id = family.account_id and is_active) then
    return;
  end if;
  update refresh_token set rotated_at = now() where digest = presented;
  insert into refresh_token (digest, session_id, expires_at) values (successor, family.id, now() + lifetime);
  return query select a.id, family.id, a.role from account a where a.id = family.account_id;
end $$;
