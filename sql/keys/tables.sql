-- API keys. A key acts as the account that created it, within its scopes. A key for an organization is deleted when
-- that account's membership ends. Only the digest of a key is stored. `hint` is the end of the key, so that people can
-- recognize it.
create table api_key (
  id uuid not null,
  account_id integer not null,
  organization_id integer,
  name text not null,
  digest bytea not null,
  hint text not null,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  -- Up to a minute late: once a minute, each edge writes the keys that it has seen.
  last_used_at timestamptz,
  constraint api_key_pkey primary key (id),
  constraint api_key_digest_key unique (digest),
  constraint api_key_digest_check check (length(digest) = 32),
  constraint api_key_name_check check (length(name) between 1 and 100),
  constraint api_key_hint_check check (length(hint) = 4),
  constraint api_key_scopes_check check (
    array_to_string(scopes, ',', '') ~ '^(\*|[a-z-]+):(read|write|work)(,(\*|[a-z-]+):(read|write|work)){0,49}$'),
  constraint api_key_account_id_fkey foreign key (account_id) references account (id) on delete cascade,
  constraint api_key_organization_id_account_id_fkey foreign key (organization_id, account_id)
    references organization_member (organization_id, user_id) on delete cascade
);
create index api_key_account_id_idx on api_key (account_id, id desc);
create index api_key_organization_id_account_id_idx on api_key (organization_id, account_id) where organization_id is not null;
create index api_key_organization_listed_idx on api_key (organization_id, id desc) where organization_id is not null;
create index api_key_expires_at_idx on api_key (expires_at) where expires_at is not null;

-- Number of a key's requests that edges have reserved in the current period. Unlogged: losing the rows in a server
-- crash does no harm. An edge reserves a hundredth of the limit per write, so not every request writes.
create unlogged table api_key_allowance (
  key_id uuid not null,
  began_at timestamptz not null,
  taken integer not null,
  -- Size of the latest reservation.
  granted integer not null,
  constraint api_key_allowance_pkey primary key (key_id),
  constraint api_key_allowance_taken_check check (granted >= 0 and taken >= granted),
  constraint api_key_allowance_key_id_fkey foreign key (key_id) references api_key (id) on delete cascade
) with (autovacuum_vacuum_scale_factor = 0.02);
