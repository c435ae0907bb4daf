-- Limits of AI usage by UTC day and month. Kinds of accounts without a row use the settings; 0 means unlimited. Kinds of
-- API keys without a row are unlimited. Costs are in US dollars.
create table ai_budget (
  account_id integer,
  key_id uuid,
  kind text not null,
  amount numeric not null,
  constraint ai_budget_account_id_fkey foreign key (account_id) references account (id) on delete cascade,
  constraint ai_budget_key_id_fkey foreign key (key_id) references api_key (id) on delete cascade,
  constraint ai_budget_account_id_key unique (account_id, kind),
  constraint ai_budget_key_id_key unique (key_id, kind),
  constraint ai_budget_holder_check check (num_nonnulls(account_id, key_id) = 1),
  constraint ai_budget_kind_check check (kind in ('day_tokens', 'day_cost', 'month_tokens', 'month_cost')),
  constraint ai_budget_amount_check check (amount between 0 and 9007199254740991 and (account_id is not null or amount > 0))
);
-- It has no primary key, without which a publication would refuse its updates.
alter table ai_budget replica identity full;

-- Estimated usage of jobs that have not ended, for accounts and keys with a budget. The end of the job deletes the row
-- and books the usage. The account and the key have no foreign keys, because rows are short-lived.
create table ai_budget_hold (
  job_id uuid not null,
  account_id integer,
  key_id uuid,
  tokens bigint not null,
  cost numeric not null,
  constraint ai_budget_hold_pkey primary key (job_id),
  constraint ai_budget_hold_job_id_fkey foreign key (job_id) references job (id) on delete cascade,
  constraint ai_budget_hold_amounts_check check (tokens >= 0 and cost >= 0)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index ai_budget_hold_account_id_idx on ai_budget_hold (account_id) where account_id is not null;
create index ai_budget_hold_key_id_idx on ai_budget_hold (key_id) where key_id is not null;

-- Sums of usage per API key and UTC day. Maintained by sums/functions.
create table ai_key_sum (
  id bigint generated always as identity,
  key_id uuid not null,
  day date not null,
  tokens bigint not null,
  cost numeric not null,
  unpriced bigint not null,
  constraint ai_key_sum_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index ai_key_sum_key_id_idx on ai_key_sum (key_id, day) include (tokens, cost, unpriced);
