-- Applies facts about a payment, found by any of its ids. Rows that turn out to be the same payment merge into the
-- oldest.
create or replace function payment_apply_transaction(ids text[], said jsonb) returns void language plpgsql as $$
declare
  rows bigint[] := payment_transactions_locked(ids);
  kept bigint := rows[1];
  twin bigint;
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
    -- Before the refunds move: the payment needs its facts first.
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
