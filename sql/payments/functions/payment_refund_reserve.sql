-- Reserves part of a payment for a refund; null reserves all that is left. Returns the refund, or the reason why there
-- is none: `problem` is `status` or `amount`. `granted` is the reserved amount, `account_id` the payer. No row if the owner has no such payment. `any_owner` ignores the owner.
create or replace function payment_refund_reserve(id bigint, owner integer, any_owner boolean, amount bigint, reason text)
returns table (refund_id bigint, problem text, status text, available bigint, granted bigint, currency text, account_id integer)
language plpgsql as $$
#variable_conflict use_column
declare
  charge payment_transaction;
begin
  select t.* into charge from payment_transaction t
  where t.id = payment_refund_reserve.id and t.shown and (any_owner or t.customer_id = (
    select c.id from payment_customer c where c.user_id = owner)) for update;
  if not found then return; end if;
  status := case when charge.charge_id is null then charge.status else 'a refund' end;
  available := charge.amount - coalesce(charge.refunded, 0) - charge.reserved;
  if status not in ('succeeded', 'partially_refunded') then
    problem := 'status';
  elsif coalesce(payment_refund_reserve.amount, available) > available or available <= 0 then
    problem := 'amount';
  else
    granted := coalesce(payment_refund_reserve.amount, available);
    currency := charge.currency;
    select c.user_id into account_id from payment_customer c where c.id = charge.customer_id;
    insert into payment_transaction as t (customer_id, charge_id, reason, facts)
    values (charge.customer_id, charge.id, payment_refund_reserve.reason, jsonb_build_object(
      'money', jsonb_build_array('0', jsonb_build_object('amount', granted, 'currency', charge.currency)),
      'outcome', jsonb_build_array('', 'pending')))
    returning t.id into refund_id;
  end if;
  return next;
end $$;
