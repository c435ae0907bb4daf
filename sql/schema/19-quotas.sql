-- Per-account quotas that override the settings; 0: unlimited.
create table account_quota (
  account_id integer not null,
  kind text not null,
  quota bigint not null,
  constraint account_quota_pkey primary key (account_id, kind),
  constraint account_quota_kind_check check (kind in ('documents', 'bytes', 'pages', 'organizations', 'keys', 'webhook_endpoints',
    'pending_deliveries', 'conversations', 'collections', 'waiting_jobs')),
  constraint account_quota_quota_check check (quota between 0 and 9007199254740991),
  constraint account_quota_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
-- The smallest quota of a kind: while all accounts together use less, no account exceeds its own.
create index account_quota_kind_idx on account_quota (kind, quota) where quota > 0;

-- Settings that SQL functions need; workers store theirs on start.
create table setting (
  name text not null,
  value bigint not null,
  constraint setting_pkey primary key (name)
);
