create or replace function payment_subscription_count_of(s payment_subscription) returns setof payment_subscription_count
language sql immutable as $$
  select null::bigint, sum_customer, 1 from unnest(array[0, s.customer_id]) sum_customer
  where sum_customer is not null and s.status in ('active', 'trialing')
$$;
