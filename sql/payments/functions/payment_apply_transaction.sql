-- Applies facts about a payment, which it finds by any of its ids. If several rows turn out to be the same payment,
-- they merge into the oldest.
create or replace function payment_apply_transaction(ids text[], new_facts jsonb) returns void language plpgsql as $$
declare
  rows bigint[] := payment_transactions_lock(ids);
  kept bigint := rows[1];
  duplicate bigint;
  duplicate_facts jsonb;
  joined jsonb := new_facts;
begin
  if kept is null then
    insert into payment_transaction (facts, customer_id) values (new_facts, payment_customer_ensure(new_facts #>> '{customer,1}'))
    returning id into kept;
  else
    foreach duplicate in array rows loop
      select facts into duplicate_facts from payment_transaction where id = duplicate;
      joined := payment_join(joined, duplicate_facts);
    end loop;
    -- Updates the payment before its refunds move, because they need its facts. The amount of an invoice shrinks if only a
    -- part of it is paid. The sum of the refunds, which payment_refunds_sum computes again, then shrinks with it.
    update payment_transaction t set facts = joined, customer_id = payment_customer_ensure(joined #>> '{customer,1}'),
      refunds = least(t.refunds, (joined #>> '{money,1,amount}')::bigint)
    where t.id = kept and t.facts <> joined;
    update payment_transaction refund set customer_id = charge.customer_id from payment_transaction charge
    where charge.id = kept and refund.charge_id = kept and refund.customer_id is distinct from charge.customer_id;
    foreach duplicate in array rows[2:] loop
      update payment_reference set transaction_id = kept where transaction_id = duplicate;
      update payment_dispute set transaction_id = kept where transaction_id = duplicate;
      update payment_transaction refund set charge_id = kept, customer_id = charge.customer_id from payment_transaction charge
      where charge.id = kept and refund.charge_id = duplicate;
      delete from payment_transaction where id = duplicate;
    end loop;
  end if;
  insert into payment_reference (provider_id, transaction_id) select id, kept from unnest(ids) id on conflict do nothing;
  update payment_dispute d set transaction_id = kept
  where d.provider_charge_id = any(ids) and d.transaction_id is distinct from kept;
  update payment_dispute d set transaction_id = kept
  where d.provider_payment_intent_id = any(ids) and d.transaction_id is distinct from kept;
end $$;
