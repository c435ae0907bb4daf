-- Applies facts about the refund with this id, or about the one that the job `request` asked for.
create or replace function payment_apply_refund(refund text, ids text[], request uuid, new_facts jsonb) returns void language plpgsql as $$
declare
  rows bigint[] := payment_transactions_lock(ids);
  charge payment_transaction;
  known bigint;
  requested bigint;
  joined jsonb;
begin
  select * into charge from payment_transaction where id = rows[1];
  if not found then return; end if;
  select transaction_id into known from payment_reference where provider_id = refund;
  select id into requested from payment_transaction where job_id = request and charge_id = charge.id and not shown;
  if known is not null and requested is not null then
    delete from payment_transaction where id = requested;
  end if;
  known := coalesce(known, requested);
  if known is null then
    insert into payment_transaction (charge_id, customer_id, facts) values (charge.id, charge.customer_id, new_facts)
    returning id into known;
  else
    select payment_join(t.facts, new_facts) into joined from payment_transaction t where t.id = known;
    update payment_transaction t set facts = joined where t.id = known and t.facts <> joined;
  end if;
  insert into payment_reference (provider_id, transaction_id) values (refund, known) on conflict do nothing;
end $$;
