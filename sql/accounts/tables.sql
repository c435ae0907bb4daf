-- Accounts and their sessions. A session is a family of refresh tokens. Each token is used once and then replaced by
-- its successor. A replay revokes the whole family, which takes one update of the session row.

-- Normalizes text for search: lower case without accents.
create function folded(value text) returns text language sql immutable parallel safe
  return lower(unaccent('unaccent', value));

create table account (
  id integer generated always as identity,
  -- Null once the account is deleted.
  email text,
  password_hash text not null,
  full_name text,
  role text not null default 'user',
  is_active boolean not null default true,
  is_verified boolean not null default false,
  last_login timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  -- When the deletion that the owner or an admin requested is due; null if no deletion is scheduled. Until then, an
  -- active account works as before.
  deletion_at timestamptz,
  -- When the account was deleted. It is then invisible and cannot act. A task deletes its data and finally this row.
  deleted_at timestamptz,
  -- The text to match in account searches. A line break separates its two parts, so no match spans both.
  words text generated always as (folded(email || coalesce(E'\n' || full_name, ''))) stored,
  constraint account_pkey primary key (id),
  constraint account_email_key unique (email),
  constraint account_email_check check (email = lower(email) and length(email) between 3 and 254),
  constraint account_full_name_check check (length(full_name) <= 200),
  constraint account_role_check check (role in ('user', 'moderator', 'admin')),
  constraint account_deleted_check check (case when deleted_at is null then email is not null
    else email is null and full_name is null and password_hash = '' and not is_active and deletion_at is null end)
);
-- Used by a query that runs every minute.
create index account_deletion_at_idx on account (deletion_at) where deletion_at is not null;
create index account_deleted_idx on account (id) where deleted_at is not null;
-- Each sort order of the account list has an index. A list of all roles merges one scan per role and state, so every
-- index covers both filters. A sign-in changes `last_login` and thus writes to all of these indexes, which costs little
-- compared with hashing the password.
create index account_created_at_idx on account (role, is_active, created_at, id) where deleted_at is null;
create index account_email_idx on account (role, is_active, email) where deleted_at is null;
-- Accounts without a sign-in sort as if they had signed in longest ago.
create index account_last_login_idx on account (role, is_active, (coalesce(last_login, timestamptz 'epoch')), created_at, id)
  where deleted_at is null;
-- Serves rare search terms. For common terms, scanning in list order finds a page quickly.
create index account_words_idx on account using gin (words gin_trgm_ops);
-- Used by each registration.
create index account_admin_idx on account (id) where role = 'admin' and is_active;

-- A revoked session cannot be refreshed. If it has also ended, its access tokens are rejected. `address`, `place`,
-- `user_agent` and `device` describe the sign-in.
create table session (
  id uuid not null,
  account_id integer not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  ended_at timestamptz,
  address text,
  -- Location of the address, as reported by a trusted proxy.
  place text,
  user_agent text,
  -- Derived from the user agent.
  device text,
  -- True if the session began with a passkey, which counts as two factors.
  by_passkey boolean not null default false,
  -- Up to a minute late: once a minute, each edge writes the sessions that it has seen and their addresses.
  last_used_at timestamptz,
  last_address text,
  last_place text,
  constraint session_pkey primary key (id),
  constraint session_ended_check check (ended_at is null or revoked_at is not null),
  constraint session_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
-- Every request reads the recently ended sessions of its account through this index.
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
  -- The table is vacuumed early, because each row is written twice and deleted two weeks later.
) with (autovacuum_vacuum_scale_factor = 0.02);
create index refresh_token_session_id_idx on refresh_token (session_id);
create index refresh_token_expires_at_idx on refresh_token (expires_at);
-- Each family has one current token; all others are rotated.
create unique index refresh_token_session_id_current_key on refresh_token (session_id) where rotated_at is null;

-- Mailed tokens. A token is derived from the row's id and the deployment's key. The task that mails it needs only the
-- row, and the stored digest cannot be used as a token. A used token stays until it expires: the task may rerun after
-- its email was read, and must not make the token valid again.
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
  constraint account_token_kind_check check (kind in ('reset', 'verify', 'sign_in')),
  constraint account_token_digest_check check (length(digest) = 32),
  constraint account_token_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index account_token_account_id_idx on account_token (account_id, kind);
create index account_token_expires_at_idx on account_token (expires_at);

-- A change of email address, which both addresses have to confirm. An account has at most one. The tokens are derived
-- from the row's id and the deployment's key, and each can be used once.
create table email_change (
  id uuid not null,
  account_id integer not null,
  -- The new address.
  email text not null,
  -- The session that requested the change, the only one that survives the change. No foreign key, because the session
  -- may be deleted first.
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
  constraint email_change_email_check check (email = lower(email) and length(email) between 3 and 254),
  constraint email_change_digest_check check (length(old_digest) = 32 and length(new_digest) = 32),
  -- The second confirmation deletes the row, so at most one confirmation is recorded.
  constraint email_change_confirmed_check check (old_confirmed_at is null or new_confirmed_at is null),
  constraint email_change_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index email_change_expires_at_idx on email_change (expires_at);

-- Exports of account data. Each is a zip archive, stored as a blob. The id is that of the job that created it.
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
-- Finds the exports that refer to a blob.
create index account_export_sha256_idx on account_export (sha256);
create index account_export_created_at_idx on account_export (created_at);

-- Failed logins by email address. The address need not have an account: an unknown address is locked like any other.
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

-- The second factor of an account: time-based one-time codes (RFC 6238). The secret is sealed, so the database alone is
-- not enough to generate codes.
create table account_totp (
  id uuid not null,
  account_id integer not null,
  -- Sealed (see tasks/platform/keys.ts).
  secret text not null,
  created_at timestamptz not null default now(),
  -- When a code proved that the owner has the secret; null until then. A sign-in asks for a code only afterwards.
  confirmed_at timestamptz,
  -- Time step of the last accepted code. Codes of this step and of earlier ones are rejected.
  last_step bigint not null default 0,
  -- Digests of the unused recovery codes.
  recovery_codes bytea[] not null default '{}',
  constraint account_totp_pkey primary key (id),
  constraint account_totp_account_id_key unique (account_id),
  constraint account_totp_secret_check check (secret ~ '^[\w-]{8}\.[\w-]+$'),
  constraint account_totp_last_step_check check (last_step >= 0),
  constraint account_totp_recovery_codes_check check (cardinality(recovery_codes) <= 10),
  constraint account_totp_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
create index account_totp_sealed_idx on account_totp (left(secret, 8), id);

-- Passkeys (WebAuthn): public keys of authenticators. A passkey signs in without a password or a second factor.
create table passkey (
  id uuid not null,
  account_id integer not null,
  -- The id that the authenticator assigned to the key.
  credential_id bytea not null,
  -- The public key in COSE format.
  public_key bytea not null,
  -- The authenticator's signature counter; 0 if the authenticator has none. A counter that goes backwards reveals a
  -- copied key.
  counter bigint not null,
  transports text[] not null,
  name text not null,
  -- True if the authenticator syncs the key to several devices.
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

-- Challenges for authenticators to sign. Each is valid once, for a few minutes. Unlogged: if a server crash loses them,
-- users can retry.
create unlogged table passkey_challenge (
  challenge bytea not null,
  -- The account that registers a passkey; null for a sign-in. No foreign key, because the account is looked up anyway.
  account_id integer,
  expires_at timestamptz not null,
  constraint passkey_challenge_pkey primary key (challenge),
  constraint passkey_challenge_check check (length(challenge) = 32)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index passkey_challenge_expires_at_idx on passkey_challenge (expires_at);

-- Identities at an OpenID Connect issuer, which sign in to an account.
create table oidc_identity (
  id uuid not null,
  account_id integer not null,
  issuer text not null,
  -- The issuer's id of the person, which never changes.
  subject text not null,
  -- The address at the issuer, for people; null if it is unknown.
  email text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  constraint oidc_identity_pkey primary key (id),
  constraint oidc_identity_subject_key unique (issuer, subject),
  constraint oidc_identity_account_id_key unique (account_id, issuer),
  constraint oidc_identity_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);

-- Claims of people whom the issuer has signed in, until the browser starts its session. The digest is of values that
-- only this browser has. Unlogged: if a server crash loses them, users can retry.
create unlogged table oidc_login (
  digest bytea not null,
  issuer text not null,
  subject text not null,
  -- Address that the issuer has verified; null if there is none.
  email text,
  full_name text,
  expires_at timestamptz not null,
  constraint oidc_login_pkey primary key (digest),
  constraint oidc_login_digest_check check (length(digest) = 32)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index oidc_login_expires_at_idx on oidc_login (expires_at);
