-- Quotas of single accounts, which override the settings; 0 means unlimited.
create table account_quota (
  account_id integer not null,
  kind text not null,
  quota bigint not null,
  constraint account_quota_pkey primary key (account_id, kind),
  constraint account_quota_kind_check check (kind in ('documents', 'bytes', 'pages', 'organizations', 'keys', 'webhook_endpoints',
    'pending_deliveries', 'conversations', 'collections', 'speech_characters', 'schedules', 'worker_queues', 'waiting_jobs')),
  constraint account_quota_quota_check check (quota between 0 and 9007199254740991),
  constraint account_quota_account_id_fkey foreign key (account_id) references account (id) on delete cascade
);
-- Finds the smallest quota of a kind. While all accounts together use less than that, no account exceeds its own quota.
create index account_quota_kind_idx on account_quota (kind, quota) where quota > 0;

-- Settings that SQL functions read. Workers store theirs when they start.
create table setting (
  name text not null,
  value bigint not null,
  constraint setting_pkey primary key (name)
);
