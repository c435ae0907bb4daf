-- Recomputes the refund sums of a payment whenever one of its refunds changes, its amount, or the provider's own sum of
-- refunds. `refunds` never exceeds the amount: refunds may be known before all payments of their invoice, and before an
-- earlier refund is known to have failed.
create or replace function payment_refunds_sum() returns trigger language plpgsql as $$
declare
  payment bigint;
  summed_at bigint;
begin
  -- Locks one payment per iteration before it sums. The sums then include the commit of the previous lock holder.
  for payment in select distinct c from unnest(array[old.charge_id, coalesce(new.charge_id, new.id)]) c
    where c is not null order by c loop
    select (facts #>> '{refunded,1,at}')::bigint into summed_at from payment_transaction where id = payment for update;
    update payment_transaction charge set refunds = counted, reserved = sum.requested, returned = sum.returned
    from (
      select coalesce(sum(amount) filter (where shown and status in ('succeeded', 'pending')), 0) as accepted,
        coalesce(sum(amount) filter (where not shown and status = 'pending'), 0) as requested,
        coalesce(sum(amount) filter (where (facts #>> '{returned_at,1}')::bigint >= summed_at), 0) as returned
      from payment_transaction where charge_id = payment) sum
    cross join lateral (select least(sum.accepted, amount) as counted from payment_transaction where id = payment) limited
    where charge.id = payment
      and (charge.refunds, charge.reserved, charge.returned) is distinct from (counted, sum.requested, sum.returned);
  end loop;
  return null;
end $$;

create or replace trigger payment_refund_inserted after insert on payment_transaction
  for each row when (new.charge_id is not null) execute function payment_refunds_sum();

create or replace trigger payment_refund_updated after update on payment_transaction
  for each row when (old.charge_id is not null or new.charge_id is not null) execute function payment_refunds_sum();

create or replace trigger payment_refund_deleted after delete on payment_transaction
  for each row when (old.charge_id is not null) execute function payment_refunds_sum();

create or replace trigger payment_refunded_changed after update on payment_transaction
  for each row when (new.charge_id is null and (old.facts -> 'refunded' is distinct from new.facts -> 'refunded'
    or old.facts -> 'money' is distinct from new.facts -> 'money'))
  execute function payment_refunds_sum();
