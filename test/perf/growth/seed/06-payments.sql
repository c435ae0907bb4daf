-- 300,000 payments and refunds, a tenth of them the big owner's, with events, references, disputes and 20,000
-- subscriptions. Facts have the service's format, which maps a name to [stamp, value].

create function growth.fact(value anyelement) returns jsonb language sql immutable
  as $$ select jsonb_build_array(lpad('1', 16, '0'), value) $$;
create function growth.seconds(at timestamptz) returns jsonb language sql immutable
  return growth.fact(floor(extract(epoch from at))::bigint);

insert into payment_customer (user_id, provider_customer_id, created_at)
select id, 'cus_' || id, created_at from account where id > 1;

create table growth.payment as
select n, at, c.id as customer_id, 'pi_' || n as intent, 'ch_' || n as charge, 500 + growth.pick(n, 14, 20000) as amount
from growth.size(280000) size cross join generate_series(1, size) n cross join growth.moment(n, size, '1 year') at
join payment_customer c on c.user_id = growth.owner(n, size, 10, growth.size(10000));

insert into payment_transaction (customer_id, facts)
select customer_id, jsonb_build_object('money', growth.fact(jsonb_build_object('amount', amount, 'currency',
    case when n % 20 = 0 then 'eur' else 'usd' end)), 'created', growth.seconds(at),
  'outcome', growth.fact(case when n % 25 = 0 then 'failed' when n % 100 = 1 then 'pending' else 'succeeded' end),
  'description', growth.fact('Order ' || n), 'payment_intent', growth.fact(intent), 'charge', growth.fact(charge))
from growth.payment order by n;
insert into payment_reference (provider_id, transaction_id)
select name, id from payment_transaction, unnest(array[provider_payment_intent_id, provider_charge_id]) name;

insert into payment_transaction (customer_id, charge_id, facts)
select customer_id, id, jsonb_build_object('money', growth.fact(jsonb_build_object('amount', amount / 2, 'currency', currency)),
  'created', growth.seconds(created_at + interval '1 day'), 'outcome', growth.fact('succeeded'::text), 'refund', growth.fact('re_' || id))
from payment_transaction where status = 'succeeded' and id % 14 = 0 order by id;
insert into payment_reference (provider_id, transaction_id)
select provider_refund_id, id from payment_transaction where provider_refund_id is not null;

insert into payment_dispute (transaction_id, provider_dispute_id, facts)
select id, 'du_' || id, jsonb_build_object('state', growth.fact(jsonb_build_object('status',
    (array['won', 'lost', 'needs_response', 'under_review', 'warning_issued', 'warning_closed'])[1 + id % 6],
    'event_type', 'charge.dispute.updated', 'at', floor(extract(epoch from created_at)) + 86400)),
  'reason', growth.fact('fraudulent'::text), 'money', growth.fact(jsonb_build_object('amount', amount, 'currency', currency)),
  'due_by', growth.seconds(created_at + interval '10 days'), 'charge', growth.fact(provider_charge_id),
  'payment_intent', growth.fact(provider_payment_intent_id), 'created', growth.seconds(created_at + interval '1 hour'))
from payment_transaction where charge_id is null and id % 10 = 0 order by id;

insert into payment_subscription (customer_id, provider_subscription_id, facts)
select c.id, 'sub_' || n, jsonb_build_object('status', growth.fact(
    (array['active', 'active', 'active', 'canceled', 'canceled', 'past_due', 'trialing', 'unpaid'])[1 + n % 8]),
  'plan_name', growth.fact('Plan ' || n % 5), 'period_start', growth.seconds(at), 'period_end', growth.seconds(at + interval '30 days'))
from growth.size(20000) size cross join generate_series(1, size) n cross join growth.moment(n, size, '30 days') at
join payment_customer c on c.user_id = growth.owner(n, size, 10, growth.size(10000)) order by n;

insert into payment_event (id, type, created_at, received_at, applied_at)
select 'evt_' || n, 'payment_intent.succeeded', at, at, at + interval '1 second'
from growth.size(300000) size, generate_series(1, size) n, growth.moment(n, size, '90 days') at;
drop table growth.payment;
