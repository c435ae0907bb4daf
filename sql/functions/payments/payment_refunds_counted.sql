-- Recomputes the refund sums of a payment whenever one of its refunds changes.
create or replace function payment_refunds_counted() returns trigger language plpgsql as $$
declare
  counted bigint;
begin
  -- Locks first, one payment per iteration: the sums then include the commit of the lock's previous holder.
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

create or replace trigger payment_refund_inserted after insert on payment_transaction
  for each row when (new.charge_id is not null) execute function payment_refunds_counted();

create or replace trigger payment_refund_updated after update on payment_transaction
  for each row when (old.charge_id is not null or new.charge_id is not null) execute function payment_refunds_counted();

create or replace trigger payment_refund_deleted after delete on payment_transaction
  for each row when (old.charge_id is not null) execute function payment_refunds_counted();
