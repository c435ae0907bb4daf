-- Accounts and their sessions. A session is a family of refresh tokens: each is used once and replaced by another of
-- its family, so a replay can revoke them all by revoking the one session row.

-- Text as it is looked for: in lower case, without accents.
create function folded(said text) returns text language sql immutable parallel safe
  return lower(unaccent('unaccent', said));

create table account (
  id integer generated always as identity,
  -- Null once it is deleted.
  email text,
  password_hash text not null,
  full_name text,
  role text not null default 'user',
  is_active boolean not null default true,
  is_verified boolean not null default false,
  last_login timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  -- When it is to be deleted, as its owner or an admin has asked. Until then it works as before, unless it is inactive.
  deletion_at timestamptz,
  -- Nobody sees it any more, and it can do nothing; a task deletes what belongs to it, and its row last.
  deleted_at timestamptz,
  -- What a search looks into: two lines, so that what is found is not the end of one and the beginning of the other.
  words text generated always as (folded(email || coalesce(E'\n' || full_name, ''))) stored,
  constraint account_pkey primary key (id),
  constraint account_email_key unique (email),
  constraint account_email_check check (email = lower(email) and length(email) between 3 and 320),
  constraint account_full_name_check check (length(full_name) <= 200),
  constraint account_role_check check (role in ('user', 'moderator', 'admin')),
  constraint account_deleted_check check (case when deleted_at is null then email is not null
    else email is null and full_name is null and password_hash = '' and not is_active and deletion_at is null end)
);
-- Looked through every minute.
create index account_deletion_at_idx on account (deletion_at) where deletion_at is not null;
create index account_deleted_idx on account (id) where deleted_at is not null;
-- The list, an index for each of its orders. A list of all roles is merged from those of each role and state, so that each of
-- them has both filters. A sign-in changes `last_login` and so writes to all of them, which is little beside the hash of its password.
create index account_created_at_idx on account (role, is_active, created_at, id) where deleted_at is null;
create index account_email_idx on account (role, is_active, email) where deleted_at is null;
-- Who has never signed in comes as the longest absent.
create index account_last_login_idx on account (role, is_active, (coalesce(last_login, timestamptz 'epoch')), created_at, id)
  where deleted_at is null;
-- A search finds by it what few have; a page of what many have is soon found in the order of the list.
create index account_words_idx on account using gin (words gin_trgm_ops);
-- Looked for by each registration.
create index account_admin_idx on account (id) where role = 'admin' and is_active;

-- A revoked session can no longer be refreshed; an ended one also has its access tokens refused. `address`, `place`,
-- `user_agent` and `device` are those of the sign-in.
create table session (
  id uuid not null,
  account_id integer not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  ended_at timestamptz,
  address text,
  -- What a trusted proxy says of the address; `device` is what the user agent says of itself.
  place text,
  user_agent text,
  device text,
  -- True if it began with a passkey, which is two factors by itself.
  by_passkey boolean not null default false,
  -- Behind by up to a minute: each edge writes once a minute which sessions it has seen, and from where.
  last_used_at timestamptz,
  last_address text,
  last_place text,
  constraint session_pkey primary key (id),
  constraint session_ended_check check (ended_at is null or revoked_at is not null),
  constraint session_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
-- Each request reads which sessions of its account have ended lately.
create index session_account_id_idx on session (account_id, ended_at);
create index session_listed_idx on session (account_id, id desc) where revoked_at is null;

create table refresh_token (
  digest bytea not null,
  session_id uuid not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  rotated_at timestamptz,
  constraint refresh_token_pkey primary key (digest),
  constraint refresh_token_digest_check check (length(digest) = 32),
  constraint refresh_token_session_id_fkey foreign key (session_id) references session (id) on delete cascade
  -- Each is written twice and deleted two weeks later.
) with (autovacuum_vacuum_scale_factor = 0.02);
create index refresh_token_session_id_idx on refresh_token (session_id);
create index refresh_token_expires_at_idx on refresh_token (expires_at);
-- One token of a family is current; every other one has been rotated.
create unique index refresh_token_session_id_current_key on refresh_token (session_id) where rotated_at is null;

-- Mailed tokens. A token is derived from the id and the deployment's key, so the task that mails it needs only the row,
-- and the stored digest cannot be used as a token. A used token is kept until it would have expired: a task that is
-- repeated after its email was read must not revive it.
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

-- A change of address, which both addresses have to confirm: at most one of an account. Its tokens are derived from its id
-- and the deployment's key; each is used once.
create table email_change (
  id uuid not null,
  account_id integer not null,
  -- The new address.
  email text not null,
  -- The session that has asked for it, which is the one that outlives it. No foreign key: it may be gone before.
  session_id uuid,
  old_digest bytea not null,
  new_digest bytea not null,
  old_confirmed_at timestamptz,
  new_confirmed_at timestamptz,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint email_change_pkey primary key (id),
  constraint email_change_account_id_key unique (account_id),
  constraint email_change_old_digest_key unique (old_digest),
  constraint email_change_new_digest_key unique (new_digest),
  constraint email_change_email_check check (email = lower(email) and length(email) between 3 and 320),
  constraint email_change_digest_check check (length(old_digest) = 32 and length(new_digest) = 32),
  -- With the second confirmation the row goes.
  constraint email_change_confirmed_check check (old_confirmed_at is null or new_confirmed_at is null),
  constraint email_change_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index email_change_expires_at_idx on email_change (expires_at);

-- Exports of all that an account has: a zip archive each, whose bytes are a blob. The id is that of the job that made it.
create table account_export (
  id uuid not null,
  account_id integer not null,
  sha256 bytea not null,
  byte_size bigint not null,
  created_at timestamptz not null default now(),
  constraint account_export_pkey primary key (id),
  constraint account_export_sha256_check check (length(sha256) = 32),
  constraint account_export_byte_size_check check (byte_size > 0),
  constraint account_export_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index account_export_account_id_idx on account_export (account_id, id desc);
-- Whether given bytes are those of an export.
create index account_export_sha256_idx on account_export (sha256);
create index account_export_created_at_idx on account_export (created_at);

-- Failed logins by email address, with or without an account: an unknown address is locked like any other.
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

-- The second factor of an account: one-time codes by time (RFC 6238). Their secret is derived from the id and the
-- deployment's key, so the database alone is not enough to make them.
create table account_totp (
  id uuid not null,
  account_id integer not null,
  created_at timestamptz not null default now(),
  -- Null until a code has shown that the owner has the secret; until then no sign-in asks for one.
  confirmed_at timestamptz,
  -- The time step of the last code that was accepted: neither it nor an earlier one is accepted again.
  last_step bigint not null default 0,
  -- Digests of the recovery codes that are not used yet.
  recovery_codes bytea[] not null default '{}',
  constraint account_totp_pkey primary key (id),
  constraint account_totp_account_id_key unique (account_id),
  constraint account_totp_last_step_check check (last_step >= 0),
  constraint account_totp_recovery_codes_check check (cardinality(recovery_codes) <= 10),
  constraint account_totp_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);

-- Passkeys (WebAuthn): public keys of authenticators, which sign in without a password or a second factor.
create table passkey (
  id uuid not null,
  account_id integer not null,
  -- What the authenticator calls it.
  credential_id bytea not null,
  -- In COSE's format.
  public_key bytea not null,
  -- How often it has signed, as it says itself; 0 if it does not count. One that goes back was copied.
  counter bigint not null,
  transports text[] not null,
  name text not null,
  -- Whether its authenticator keeps it on several devices.
  is_synced boolean not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  constraint passkey_pkey primary key (id),
  constraint passkey_credential_id_key unique (credential_id),
  constraint passkey_credential_id_check check (length(credential_id) between 1 and 1023),
  constraint passkey_public_key_check check (length(public_key) between 1 and 4000),
  constraint passkey_counter_check check (counter >= 0),
  constraint passkey_transports_check check (cardinality(transports) <= 10),
  constraint passkey_name_check check (length(name) between 1 and 100),
  constraint passkey_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index passkey_account_id_idx on passkey (account_id, id desc);

-- What authenticators are asked to sign, each once, within minutes. Unlogged: losing them in a crash of the server only has
-- people try again.
create unlogged table passkey_challenge (
  challenge bytea not null,
  -- Whose passkey it registers; null: it is for a sign-in. No foreign key: it is looked up by the account itself.
  account_id integer,
  expires_at timestamptz not null,
  constraint passkey_challenge_pkey primary key (challenge),
  constraint passkey_challenge_check check (length(challenge) = 32)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index passkey_challenge_expires_at_idx on passkey_challenge (expires_at);
