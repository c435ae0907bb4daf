-- Payments as reported by the provider, including those that other systems requested.
--
-- Events may arrive late, twice, and in any order. Their contents are therefore stored as facts: name -> [stamp,
-- value]. If a fact is reported twice, the value with the greater stamp wins. So a row depends only on the reports
-- about it, never on the order of their arrival. Stamps are compared as bytes; tasks/payments/facts.ts makes them. The
-- columns that clients see are generated from the facts. Amounts are in the smallest unit of their currency.

-- A customer of the provider. `user_id` is null if the account was deleted or never existed.
create table payment_customer (
  id bigint generated always as identity,
  user_id integer,
  provider_customer_id text not null,
  -- The customer that replaced this one, because the provider no longer has it. Reports about this id apply to the
  -- replacement. Null if not replaced.
  replaced_by bigint,
  created_at timestamptz not null default now(),
  constraint payment_customer_pkey primary key (id),
  constraint payment_customer_user_id_key unique (user_id),
  constraint payment_customer_provider_customer_id_key unique (provider_customer_id),
  constraint payment_customer_user_id_fkey foreign key (user_id) references account (id) on delete set null,
  constraint payment_customer_same_as_fkey foreign key (replaced_by) references payment_customer (id)
);
create index payment_customer_same_as_idx on payment_customer (replaced_by) where replaced_by is not null;

-- Returns the refunded amount of a payment: the sum of its refunds, or the provider's own sum, which may include refunds
-- without a row. `returned` is the part of the provider's sum that has failed since.
create function payment_refunded(facts jsonb, refunds bigint, returned bigint) returns bigint
language sql immutable parallel safe
return greatest(refunds, (facts #>> '{refunded,1,amount}')::bigint - returned);

create function payment_status(is_refund boolean, facts jsonb, refunded bigint) returns text
language sql immutable parallel safe
return case
  when is_refund or coalesce(facts #>> '{outcome,1}', 'pending') <> 'succeeded' then coalesce(facts #>> '{outcome,1}', 'pending')
  when refunded = 0 then 'succeeded'
  when refunded >= (facts #>> '{money,1,amount}')::bigint then 'refunded'
  else 'partially_refunded' end;

-- A payment, or a refund of one. A refund gets a row when it is requested, and is shown once the provider has accepted
-- it.
create table payment_transaction (
  id bigint generated always as identity,
  customer_id bigint,
  -- The payment that is refunded; null if the row is a payment itself.
  charge_id bigint,
  facts jsonb not null default '{}',
  -- Sums of the payment's refunds: `refunds` of the accepted ones, `reserved` of those requested but not accepted yet.
  -- `returned` is the sum of those that have failed since the provider last reported its own sum.
  refunds bigint not null default 0,
  reserved bigint not null default 0,
  returned bigint not null default 0,
  -- The job that requests a refund, and the reason for the refund.
  job_id uuid,
  reason text,
  -- The last look-up of a pending refund at the provider; null if none.
  looked_up_at timestamptz,
  type text not null generated always as (case when charge_id is not null then 'refund'
    when facts ? 'subscription' then 'subscription' else 'charge' end) stored,
  status text not null generated always as (payment_status(charge_id is not null, facts,
    payment_refunded(facts, refunds, returned))) stored,
  amount bigint generated always as ((facts #>> '{money,1,amount}')::bigint) stored,
  currency text generated always as (facts #>> '{money,1,currency}') stored,
  refunded bigint not null generated always as (payment_refunded(facts, refunds, returned)) stored,
  description text generated always as (facts #>> '{description,1}') stored,
  provider_charge_id text generated always as (facts #>> '{charge,1}') stored,
  provider_payment_intent_id text generated always as (facts #>> '{payment_intent,1}') stored,
  provider_invoice_id text generated always as (facts #>> '{invoice,1}') stored,
  provider_session_id text generated always as (facts #>> '{session,1}') stored,
  provider_subscription_id text generated always as (facts #>> '{subscription,1}') stored,
  provider_refund_id text generated always as (facts #>> '{refund,1}') stored,
  provider_transaction_id text generated always as (coalesce(facts #>> '{refund,1}', facts #>> '{invoice,1}',
    facts #>> '{payment_intent,1}', facts #>> '{charge,1}', facts #>> '{session,1}')) stored,
  created_at timestamptz generated always as (to_timestamp((facts #>> '{created,1}')::float8)) stored,
  -- False until an event has reported the amount.
  shown boolean not null generated always as (facts ? 'money' and facts ? 'created'
    and (charge_id is null or facts ? 'refund')) stored,
  -- True if a paid invoice does not count yet, because its payments are unknown and may count already.
  unlinked boolean not null generated always as (coalesce((facts #>> '{unlinked,1}')::boolean, false)
    and not facts ? 'payment_intent' and not facts ? 'charge') stored,
  constraint payment_transaction_pkey primary key (id),
  constraint payment_transaction_job_id_key unique (job_id),
  constraint payment_transaction_amount_check check (amount >= 0),
  constraint payment_transaction_currency_check check (currency = lower(currency)),
  constraint payment_transaction_status_check check (status in
    ('succeeded', 'pending', 'failed', 'refunded', 'partially_refunded', 'canceled')),
  -- Refunds count at most the amount of the payment, see payment_refunds_sum.
  constraint payment_transaction_refunds_check check (refunds >= 0 and reserved >= 0 and refunds <= amount),
  constraint payment_transaction_customer_id_fkey foreign key (customer_id) references payment_customer (id),
  constraint payment_transaction_charge_id_fkey foreign key (charge_id) references payment_transaction (id)
);
create index payment_transaction_created_at_idx on payment_transaction (created_at desc, id desc) where shown;
create index payment_transaction_status_idx on payment_transaction (status, created_at desc, id desc) where shown;
create index payment_transaction_customer_id_status_idx on payment_transaction (customer_id, status, created_at desc, id desc)
  where shown;
create index payment_transaction_customer_id_idx on payment_transaction (customer_id, shown, created_at desc, id desc);
-- Serves lists by amount. A list of all statuses merges one scan per status.
create index payment_transaction_amount_idx on payment_transaction (status, amount, id) where shown;
create index payment_transaction_customer_id_amount_idx on payment_transaction (customer_id, status, amount, id) where shown;
create index payment_transaction_charge_id_idx on payment_transaction (charge_id) where charge_id is not null;
create index payment_transaction_pending_refund_idx on payment_transaction (looked_up_at nulls first, id)
  where charge_id is not null and status = 'pending';
create index payment_transaction_unlinked_idx on payment_transaction (customer_id, id) where unlinked;
create index payment_transaction_reserved_idx on payment_transaction (id) where charge_id is not null and not shown;

-- Sums per customer (0 for all), currency and UTC day: the shown transactions, the successful payments among them, and
-- the revenue of those minus refunds. Maintained by sums/functions.
create table payment_sum (
  id bigint generated always as identity,
  customer_id integer not null,
  currency text not null,
  day date not null,
  transactions bigint not null,
  payments bigint not null,
  revenue bigint not null,
  constraint payment_sum_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index payment_sum_customer_id_idx on payment_sum (customer_id, currency, day) include (transactions, payments, revenue);

-- Maps each provider id (charge, payment intent, invoice, session or refund) to its transaction.
create table payment_reference (
  provider_id text not null,
  transaction_id bigint not null,
  constraint payment_reference_pkey primary key (provider_id),
  constraint payment_reference_transaction_id_fkey foreign key (transaction_id)
    references payment_transaction (id) on delete cascade
);
create index payment_reference_transaction_id_idx on payment_reference (transaction_id);

create table payment_subscription (
  id bigint generated always as identity,
  customer_id bigint,
  provider_subscription_id text not null,
  facts jsonb not null default '{}',
  status text not null generated always as (coalesce(facts #>> '{status,1}', 'incomplete')) stored,
  plan_name text not null generated always as (coalesce(facts #>> '{plan_name,1}', '')) stored,
  current_period_start timestamptz generated always as (to_timestamp((facts #>> '{period_start,1}')::float8)) stored,
  current_period_end timestamptz generated always as (to_timestamp((facts #>> '{period_end,1}')::float8)) stored,
  -- The set end; null if there is none.
  cancel_at timestamptz generated always as (to_timestamp((facts #>> '{cancel_at,1}')::float8)) stored,
  -- True if the paid period is the last one, however the provider says so. `willRenew` has the same rule.
  cancel_at_period_end boolean not null generated always as (coalesce((facts #>> '{cancel_at_period_end,1}')::boolean, false)
    or coalesce((facts #>> '{cancel_at,1}')::bigint
      <= coalesce((facts #>> '{period_end,1}')::bigint, (facts #>> '{cancel_at,1}')::bigint), false)) stored,
  constraint payment_subscription_pkey primary key (id),
  constraint payment_subscription_provider_subscription_id_key unique (provider_subscription_id),
  constraint payment_subscription_status_check check (status in
    ('active', 'past_due', 'canceled', 'incomplete', 'trialing', 'unpaid')),
  constraint payment_subscription_customer_id_fkey foreign key (customer_id) references payment_customer (id)
);
create index payment_subscription_customer_id_idx on payment_subscription (customer_id, id desc);
create index payment_subscription_customer_id_status_idx on payment_subscription (customer_id, status, id desc);
create index payment_subscription_status_idx on payment_subscription (status, id desc);

-- Number of active subscriptions per customer (0 for all). Maintained by sums/functions.
create table payment_subscription_count (
  id bigint generated always as identity,
  customer_id integer not null,
  subscriptions bigint not null,
  constraint payment_subscription_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index payment_subscription_count_customer_id_idx on payment_subscription_count (customer_id);

-- Disputes and early fraud warnings. A dispute may be reported before its payment.
create table payment_dispute (
  id bigint generated always as identity,
  transaction_id bigint,
  -- The customer of the disputed payment. A trigger sets the column and ignores any value written to it.
  customer_id bigint,
  provider_dispute_id text not null,
  facts jsonb not null default '{}',
  status text not null generated always as (facts #>> '{state,1,status}') stored,
  event_type text not null generated always as (facts #>> '{state,1,event_type}') stored,
  reason text not null generated always as (coalesce(facts #>> '{reason,1}', '')) stored,
  amount bigint generated always as ((facts #>> '{money,1,amount}')::bigint) stored,
  currency text generated always as (facts #>> '{money,1,currency}') stored,
  evidence_due_by timestamptz generated always as (to_timestamp((facts #>> '{due_by,1}')::float8)) stored,
  provider_charge_id text generated always as (facts #>> '{charge,1}') stored,
  provider_payment_intent_id text generated always as (facts #>> '{payment_intent,1}') stored,
  created_at timestamptz not null generated always as (to_timestamp((facts #>> '{created,1}')::float8)) stored,
  updated_at timestamptz not null generated always as (to_timestamp((facts #>> '{state,1,at}')::float8)) stored,
  constraint payment_dispute_pkey primary key (id),
  constraint payment_dispute_provider_dispute_id_key unique (provider_dispute_id),
  constraint payment_dispute_status_check check (status in
    ('warning_issued', 'warning_closed', 'needs_response', 'under_review', 'won', 'lost', 'charge_refunded')),
  constraint payment_dispute_transaction_id_fkey foreign key (transaction_id) references payment_transaction (id)
);
create index payment_dispute_transaction_id_idx on payment_dispute (transaction_id);
create index payment_dispute_customer_id_idx on payment_dispute (customer_id, id desc) where customer_id is not null;
create index payment_dispute_customer_id_status_idx on payment_dispute (customer_id, status, id desc)
  where customer_id is not null;
create index payment_dispute_status_idx on payment_dispute (status, id desc);
create index payment_dispute_provider_charge_id_idx on payment_dispute (provider_charge_id);
create index payment_dispute_provider_payment_intent_id_idx on payment_dispute (provider_payment_intent_id);

-- Events by id, each stored once. The data is cleared when the event is applied, because it contains names and
-- addresses of people.
create table payment_event (
  id text not null,
  type text not null,
  created_at timestamptz not null,
  received_at timestamptz not null default now(),
  data jsonb,
  job_id uuid,
  applied_at timestamptz,
  constraint payment_event_pkey primary key (id),
  constraint payment_event_applied_at_check check ((data is null) = (applied_at is not null))
);
create index payment_event_pending_idx on payment_event (received_at) where applied_at is null;
create index payment_event_received_at_idx on payment_event (received_at);

-- Counts of events that were acknowledged but not applied, because they are about a connected account or of the other
-- mode than the provider's key.
create table payment_ignored_event (
  reason text not null,
  events bigint not null,
  last_type text not null,
  last_received_at timestamptz not null default now(),
  constraint payment_ignored_event_pkey primary key (reason),
  constraint payment_ignored_event_reason_check check (reason in ('connected_account', 'other_mode'))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);

-- The rights that the provider's key lacks, as its dashboard names them. The table has at most one row.
create table payment_key (
  single boolean not null default true,
  missing_rights text[] not null,
  constraint payment_key_pkey primary key (single),
  constraint payment_key_single_check check (single)
);

-- The time up to which the provider's event list has been read. The table has at most one row.
create table payment_reconciliation (
  single boolean not null default true,
  read_until timestamptz not null,
  constraint payment_reconciliation_pkey primary key (single),
  constraint payment_reconciliation_single_check check (single)
);
