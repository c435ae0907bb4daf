-- Counts a refund on the day of its payment, so that the days add up to the total revenue. An invoice whose payments are
-- unknown does not count, because they may count already.
create or replace function payment_sum_of(t payment_transaction) returns setof payment_sum language sql immutable as $$
  select null::bigint, sum_customer, t.currency, (t.created_at at time zone 'utc')::date, 1, paid::integer,
    case when paid then t.amount - least(t.refunded, t.amount) else 0 end
  from unnest(array[0, t.customer_id]) sum_customer,
    (select t.charge_id is null and not t.unlinked and t.status in ('succeeded', 'refunded', 'partially_refunded')) payment (paid)
  where sum_customer is not null and t.shown
$$;
