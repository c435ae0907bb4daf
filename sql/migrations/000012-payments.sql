-- Payments: what the provider has told of them, whoever asked for it.
--
-- Events come late, twice, and in any order. What they say is therefore kept as facts: name -> [stamp, value]. Of two
-- values of a fact the one with the greater stamp holds, so that a row depends on what was said of it and never on the
-- order in which it was heard. Stamps are compared as bytes; tasks/payments/changes.ts makes them. What clients see is
-- generated from the facts. Money is in the smallest unit of its currency.

-- Both together; of the same fact the later one, and of equal stamps one value, whichever comes first.
create function payment_join(one jsonb, other jsonb) returns jsonb language sql immutable parallel safe
return (
  select coalesce(jsonb_object_agg(key, value), '{}') from (
    select distinct on (key) key, value
    from (select * from jsonb_each(one) union all select * from jsonb_each(other)) said
    order by key, (value ->> 0) collate "C" desc, (value -> 1)::text collate "C" desc) held);

-- A customer of the provider. One whose account is deleted, or who never had one, is nobody's.
create table payment_customer (
  id integer generated always as identity,
  user_id integer,
  provider_customer_id text not null,
  created_at timestamptz not null default now(),
  constraint payment_customer_pkey primary key (id),
  constraint payment_customer_user_id_key unique (user_id),
  constraint payment_customer_provider_customer_id_key unique (provider_customer_id),
  constraint payment_customer_user_id_fkey foreign key (user_id) references account (id) on delete set null
);

create function payment_status(is_refund boolean, facts jsonb, refunds bigint) returns text
language sql immutable parallel safe
return case
  when is_refund or coalesce(facts #>> '{outcome,1}', 'pending') <> 'succeeded' then coalesce(facts #>> '{outcome,1}', 'pending')
  when greatest(refunds, (facts #>> '{refunded,1}')::bigint, 0) = 0 then 'succeeded'
  when greatest(refunds, (facts #>> '{refunded,1}')::bigint) >= (facts #>> '{money,1,amount}')::bigint then 'refunded'
  else 'partially_refunded' end;

-- A payment, or a refund of one. A refund is there from when it is asked for, and shown once the provider has taken it.
create table payment_transaction (
  id integer generated always as identity,
  customer_id integer,
  -- What a refund is a refund of.
  charge_id integer,
  facts jsonb not null default '{}',
  -- Refunds of it that the provider has taken, and those that it was or will be asked for.
  refunds bigint not null default 0,
  reserved bigint not null default 0,
  -- The job that asks for a refund, and what it says why.
  job_id uuid,
  reason text,
  type text not null generated always as (case when charge_id is not null then 'refund'
    when facts ? 'subscription' then 'subscription' else 'charge' end) stored,
  status text not null generated always as (payment_status(charge_id is not null, facts, refunds)) stored,
  amount bigint generated always as ((facts #>> '{money,1,amount}')::bigint) stored,
  currency text generated always as (facts #>> '{money,1,currency}') stored,
  refunded bigint not null generated always as (greatest(refunds, (facts #>> '{refunded,1}')::bigint)) stored,
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
  -- One whose amount no event has told yet is not.
  shown boolean not null generated always as (facts ? 'money' and facts ? 'created'
    and (charge_id is null or facts ? 'refund')) stored,
  constraint payment_transaction_pkey primary key (id),
  constraint payment_transaction_job_id_key unique (job_id),
  constraint payment_transaction_amount_check check (amount >= 0),
  constraint payment_transaction_currency_check check (currency = lower(currency)),
  constraint payment_transaction_status_check check (status in
    ('succeeded', 'pending', 'failed', 'refunded', 'partially_refunded', 'canceled')),
  -- Whatever runs at once, not more is given back than was paid.
  constraint payment_transaction_refunds_check check (refunds >= 0 and reserved >= 0 and refunds <= amount),
  constraint payment_transaction_customer_id_fkey foreign key (customer_id) references payment_customer (id),
  constraint payment_transaction_charge_id_fkey foreign key (charge_id) references payment_transaction (id)
);
create index payment_transaction_created_at_idx on payment_transaction (created_at desc, id desc) where shown;
create index payment_transaction_status_idx on payment_transaction (status, created_at desc, id desc) where shown;
create index payment_transaction_customer_id_idx on payment_transaction (customer_id, created_at desc, id desc);
create index payment_transaction_charge_id_idx on payment_transaction (charge_id) where charge_id is not null;
create index payment_transaction_reserved_idx on payment_transaction (id) where charge_id is not null and not shown;

-- Which row a provider's id belongs to: of a charge, payment intent, invoice, session or refund.
create table payment_reference (
  provider_id text not null,
  transaction_id integer not null,
  constraint payment_reference_pkey primary key (provider_id),
  constraint payment_reference_transaction_id_fkey foreign key (transaction_id)
    references payment_transaction (id) on delete cascade
);
create index payment_reference_transaction_id_idx on payment_reference (transaction_id);

create table payment_subscription (
  id integer generated always as identity,
  customer_id integer,
  provider_subscription_id text not null,
  facts jsonb not null default '{}',
  status text not null generated always as (coalesce(facts #>> '{status,1}', 'incomplete')) stored,
  plan_name text not null generated always as (coalesce(facts #>> '{plan_name,1}', '')) stored,
  current_period_start timestamptz generated always as (to_timestamp((facts #>> '{period_start,1}')::float8)) stored,
  current_period_end timestamptz generated always as (to_timestamp((facts #>> '{period_end,1}')::float8)) stored,
  cancel_at_period_end boolean not null
    generated always as (coalesce((facts #>> '{cancel_at_period_end,1}')::boolean, false)) stored,
  constraint payment_subscription_pkey primary key (id),
  constraint payment_subscription_provider_subscription_id_key unique (provider_subscription_id),
  constraint payment_subscription_status_check check (status in
    ('active', 'past_due', 'canceled', 'incomplete', 'trialing', 'unpaid')),
  constraint payment_subscription_customer_id_fkey foreign key (customer_id) references payment_customer (id)
);
create index payment_subscription_customer_id_idx on payment_subscription (customer_id, id desc);
create index payment_subscription_status_idx on payment_subscription (status, id desc);

-- Disputes and early fraud warnings. One may be heard of before its payment.
create table payment_dispute (
  id integer generated always as identity,
  transaction_id integer,
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
create index payment_dispute_status_idx on payment_dispute (status, id desc);
create index payment_dispute_provider_charge_id_idx on payment_dispute (provider_charge_id);
create index payment_dispute_provider_payment_intent_id_idx on payment_dispute (provider_payment_intent_id);

-- Events by their id, each once. What one says is kept until it is applied: it names people and where they live.
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

-- Until when the provider's list of events was read: one row at most.
create table payment_reconciliation (
  single boolean not null default true,
  read_until timestamptz not null,
  constraint payment_reconciliation_pkey primary key (single),
  constraint payment_reconciliation_single_check check (single)
);

-- What clients see.
create function payment_transaction_json(t payment_transaction) returns json language sql stable parallel safe
  return json_build_object('id', t.id, 'provider_transaction_id', t.provider_transaction_id, 'type', t.type,
    'status', t.status, 'amount', t.amount, 'currency', t.currency,
    'description', coalesce(t.description, 'Refund of transaction ' || t.charge_id, ''), 'created_at', iso(t.created_at));

create function payment_subscription_json(s payment_subscription) returns json language sql stable parallel safe
  return json_build_object('id', s.id, 'provider_subscription_id', s.provider_subscription_id, 'plan_name', s.plan_name,
    'status', s.status, 'current_period_start', iso(s.current_period_start), 'current_period_end', iso(s.current_period_end),
    'cancel_at_period_end', s.cancel_at_period_end);

-- A warning has no amount of its own: it is about all of the payment.
create function payment_dispute_json(d payment_dispute, t payment_transaction) returns json language sql stable parallel safe
  return json_build_object('id', d.id, 'transaction_id', d.transaction_id, 'provider_dispute_id', d.provider_dispute_id,
    'status', d.status, 'reason', d.reason, 'amount', coalesce(d.amount, t.amount, 0), 'currency', coalesce(d.currency, t.currency),
    'evidence_due_by', iso(d.evidence_due_by), 'event_type', d.event_type, 'created_at', iso(d.created_at),
    'updated_at', iso(d.updated_at));

-- The refunds of a payment, counted anew whenever one of them changes.
create function payment_refunds_counted() returns trigger language plpgsql as $$
declare
  counted integer;
begin
  -- In a loop and by a lock first: the statement that counts then sees what the lock waited for.
  for counted in select distinct c from unnest(array[old.charge_id, new.charge_id]) c where c is not null order by c loop
    perform from payment_transaction where id = counted for update;
    update payment_transaction charge set refunds = sum.taken, reserved = sum.asked
    from (
      select coalesce(sum(amount) filter (where shown and status in ('succeeded', 'pending')), 0) as taken,
        coalesce(sum(amount) filter (where not shown and status = 'pending'), 0) as asked
      from payment_transaction where charge_id = counted) sum
    where charge.id = counted and (charge.refunds, charge.reserved) is distinct from (sum.taken, sum.asked);
  end loop;
  return null;
end $$;
create trigger payment_refund_inserted after insert on payment_transaction
  for each row when (new.charge_id is not null) execute function payment_refunds_counted();
create trigger payment_refund_updated after update on payment_transaction
  for each row when (old.charge_id is not null or new.charge_id is not null) execute function payment_refunds_counted();
create trigger payment_refund_deleted after delete on payment_transaction
  for each row when (old.charge_id is not null) execute function payment_refunds_counted();

-- Reserves an amount of a payment for a refund; null stands for all that is left. Answers the refund, or why there is
-- none: `problem` is `status` or `amount`. No row when the owner has no such payment; `everybody` asks for nobody's leave.
create function payment_refund_reserve(id integer, owner integer, everybody boolean, amount bigint, reason text)
returns table (refund_id integer, problem text, status text, available bigint) language plpgsql as $$
#variable_conflict use_column
declare
  charge payment_transaction;
begin
  select t.* into charge from payment_transaction t
  where t.id = payment_refund_reserve.id and t.shown and (everybody or t.customer_id = (
    select c.id from payment_customer c where c.user_id = owner)) for update;
  if not found then return; end if;
  status := case when charge.charge_id is null then charge.status else 'a refund' end;
  available := charge.amount - coalesce(charge.refunded, 0) - charge.reserved;
  if status not in ('succeeded', 'partially_refunded') then
    problem := 'status';
  elsif coalesce(payment_refund_reserve.amount, available) > available or available <= 0 then
    problem := 'amount';
  else
    insert into payment_transaction as t (customer_id, charge_id, reason, facts)
    values (charge.customer_id, charge.id, payment_refund_reserve.reason, jsonb_build_object(
      'money', jsonb_build_array('0', jsonb_build_object('amount', coalesce(payment_refund_reserve.amount, available),
        'currency', charge.currency)),
      'outcome', jsonb_build_array('', 'pending')))
    returning t.id into refund_id;
  end if;
  return next;
end $$;

-- The rows that have one of these ids of the provider's, locked, the oldest first.
create function payment_transactions_locked(ids text[]) returns integer[] language plpgsql as $$
declare
  found_rows integer[];
  still integer[];
begin
  loop
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into found_rows
    from payment_reference where provider_id = any(ids);
    perform from payment_transaction where id = any(found_rows) order by id for update;
    -- Two of them may have become one while this waited.
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into still
    from payment_reference where provider_id = any(ids);
    exit when still = found_rows;
  end loop;
  return found_rows;
end $$;

create function payment_customer_of(provider_customer text) returns integer language plpgsql as $$
declare
  customer integer;
begin
  if provider_customer is null then return null; end if;
  select id into customer from payment_customer where provider_customer_id = provider_customer;
  if customer is not null then return customer; end if;
  insert into payment_customer (provider_customer_id) values (provider_customer) on conflict do nothing;
  -- A statement of its own: it sees what the insert waited for.
  select id into customer from payment_customer where provider_customer_id = provider_customer;
  return customer;
end $$;

-- What is said of a payment by any of its ids. Rows that turn out to be the same payment become the oldest of them.
create function payment_apply_transaction(ids text[], said jsonb) returns void language plpgsql as $$
declare
  rows integer[] := payment_transactions_locked(ids);
  kept integer := rows[1];
  twin integer;
  held jsonb;
  joined jsonb := said;
begin
  if kept is null then
    insert into payment_transaction (facts, customer_id) values (said, payment_customer_of(said #>> '{customer,1}'))
    returning id into kept;
  else
    foreach twin in array rows loop
      select facts into held from payment_transaction where id = twin;
      joined := payment_join(joined, held);
    end loop;
    -- Before the refunds move: there has to be something that they are refunds of.
    update payment_transaction t set facts = joined, customer_id = payment_customer_of(joined #>> '{customer,1}')
    where t.id = kept and t.facts <> joined;
    update payment_transaction refund set customer_id = charge.customer_id from payment_transaction charge
    where charge.id = kept and refund.charge_id = kept and refund.customer_id is distinct from charge.customer_id;
    foreach twin in array rows[2:] loop
      update payment_reference set transaction_id = kept where transaction_id = twin;
      update payment_dispute set transaction_id = kept where transaction_id = twin;
      update payment_transaction refund set charge_id = kept, customer_id = charge.customer_id from payment_transaction charge
      where charge.id = kept and refund.charge_id = twin;
      delete from payment_transaction where id = twin;
    end loop;
  end if;
  insert into payment_reference (provider_id, transaction_id) select id, kept from unnest(ids) id on conflict do nothing;
  update payment_dispute d set transaction_id = kept
  where d.provider_charge_id = any(ids) and d.transaction_id is distinct from kept;
  update payment_dispute d set transaction_id = kept
  where d.provider_payment_intent_id = any(ids) and d.transaction_id is distinct from kept;
end $$;

-- What is said of a refund: of the one with this id, or of the one that the job `request` asked for.
create function payment_apply_refund(refund text, ids text[], request uuid, said jsonb) returns void language plpgsql as $$
declare
  rows integer[] := payment_transactions_locked(ids);
  charge payment_transaction;
  known integer;
  asked integer;
  joined jsonb;
begin
  select * into charge from payment_transaction where id = rows[1];
  if not found then return; end if;
  select transaction_id into known from payment_reference where provider_id = refund;
  select id into asked from payment_transaction where job_id = request and charge_id = charge.id and not shown;
  if known is not null and asked is not null then
    delete from payment_transaction where id = asked;
  end if;
  known := coalesce(known, asked);
  if known is null then
    insert into payment_transaction (charge_id, customer_id, facts) values (charge.id, charge.customer_id, said)
    returning id into known;
  else
    select payment_join(t.facts, said) into joined from payment_transaction t where t.id = known;
    update payment_transaction t set facts = joined where t.id = known and t.facts <> joined;
  end if;
  insert into payment_reference (provider_id, transaction_id) values (refund, known) on conflict do nothing;
end $$;

create function payment_apply_subscription(subscription text, said jsonb) returns void language plpgsql as $$
begin
  insert into payment_subscription as s (provider_subscription_id, customer_id, facts)
  values (subscription, payment_customer_of(said #>> '{customer,1}'), said)
  on conflict on constraint payment_subscription_provider_subscription_id_key do update
  set facts = payment_join(s.facts, excluded.facts), customer_id = coalesce(s.customer_id, excluded.customer_id)
  where s.facts is distinct from payment_join(s.facts, excluded.facts);
end $$;

create function payment_apply_dispute(dispute text, ids text[], said jsonb) returns void language plpgsql as $$
begin
  insert into payment_dispute as d (provider_dispute_id, transaction_id, facts)
  values (dispute, (payment_transactions_locked(ids))[1], said)
  on conflict on constraint payment_dispute_provider_dispute_id_key do update
  set facts = payment_join(d.facts, excluded.facts), transaction_id = coalesce(excluded.transaction_id, d.transaction_id)
  where d.facts is distinct from payment_join(d.facts, excluded.facts) or d.transaction_id is null;
end $$;

-- Applies what the provider has said. Each change: kind, id, ids (of the payment), request, facts.
create function payment_apply(changes jsonb) returns void language plpgsql as $$
declare
  change record;
begin
  -- What is told of the same thing is told one after the other. Always in key order, so that none waits for each other.
  perform pg_advisory_xact_lock(key) from (
    select distinct hashtextextended('millrace.payment:' || named, 0) as key
    from jsonb_to_recordset(changes) as c(id text, ids text[]), unnest(c.ids || c.id) named
    where named is not null order by 1) locks;
  for change in select * from jsonb_to_recordset(changes) as c(kind text, id text, ids text[], request uuid, facts jsonb) loop
    case change.kind
      when 'customer' then perform payment_customer_of(change.id);
      when 'transaction' then perform payment_apply_transaction(change.ids, change.facts);
      when 'refund' then perform payment_apply_refund(change.id, change.ids, change.request, change.facts);
      when 'subscription' then perform payment_apply_subscription(change.id, change.facts);
      when 'dispute' then perform payment_apply_dispute(change.id, change.ids, change.facts);
    end case;
  end loop;
end $$;

-- Applies what a stored event says, once, and forgets its words; false of one that was applied before.
create function payment_event_apply(event text, changes jsonb) returns boolean language plpgsql as $$
begin
  update payment_event set applied_at = now(), data = null where id = event and applied_at is null;
  if not found then return false; end if;
  perform payment_apply(changes);
  return true;
end $$;

-- Stores an event, once. `fresh` says that it needs a job: it is new, or it was never applied and nobody is at it;
-- else `job_id` is the job that is at it, null of an event that was applied.
create function payment_event_take(id text, type text, created_at timestamptz, data jsonb)
returns table (fresh boolean, job_id uuid) language plpgsql as $$
#variable_conflict use_column
begin
  insert into payment_event (id, type, created_at, data)
  values (payment_event_take.id, payment_event_take.type, payment_event_take.created_at, payment_event_take.data)
  on conflict on constraint payment_event_pkey do nothing;
  if found then
    return query select true, null::uuid;
    return;
  end if;
  -- Locked: of two that come again at once one takes it up.
  return query select e.applied_at is null and not exists (
      select from job j where j.id = e.job_id and j.status in ('queued', 'sent', 'running')),
      case when e.applied_at is null then e.job_id end
    from payment_event e where e.id = payment_event_take.id for update;
end $$;
