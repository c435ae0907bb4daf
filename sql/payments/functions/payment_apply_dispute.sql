create or replace function payment_apply_dispute(dispute text, ids text[], new_facts jsonb) returns void language plpgsql as $$
begin
  insert into payment_dispute as d (provider_dispute_id, transaction_id, facts)
  values (dispute, (payment_transactions_lock(ids))[1], new_facts)
  on conflict on constraint payment_dispute_provider_dispute_id_key do update
  set facts = payment_join(d.facts, excluded.facts), transaction_id = coalesce(excluded.transaction_id, d.transaction_id)
  where d.facts is distinct from payment_join(d.facts, excluded.facts) or d.transaction_id is null;
end $$;
