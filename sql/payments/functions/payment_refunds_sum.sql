-- Recomputes the refund sums of a payment whenever one of its refunds changes.
create or replace function payment_refunds_sum() returns trigger language plpgsql as $$
declare
  payment bigint;
begin
  -- Locks one payment per iteration before it sums. The sums then include the commit of the previous lock holder.
  for payment in select distinct c from unnest(array[old.charge_id, new.charge_id]) c where c is not null order by c loop
    perform from payment_transaction where id = payment for update;
    update payment_transaction charge set refunds = sum.accepted, reserved = sum.requested
    from (
      select coalesce(sum(amount) filter (where shown and status in ('succeeded', 'pending')), 0) as accepted,
        coalesce(sum(amount) filter (where not shown and status = 'pending'), 0) as requested
      from payment_transaction where charge_id = payment) sum
    where charge.id = payment and (charge.refunds, charge.reserved) is distinct from (sum.accepted, sum.requested);
  end loop;
  return null;
end $$;

create or replace trigger payment_refund_inserted after insert on payment_transaction
  for each row when (new.charge_id is not null) execute function payment_refunds_sum();

create or replace trigger payment_refund_updated after update on payment_transaction
  for each row when (old.charge_id is not null or new.charge_id is not null) execute function payment_refunds_sum();

create or replace trigger payment_refund_deleted after delete on payment_transaction
  for each row when (old.charge_id is not null) execute function payment_refunds_sum();
