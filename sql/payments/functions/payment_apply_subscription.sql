create or replace function payment_apply_subscription(subscription text, new_facts jsonb) returns void language plpgsql as $$
begin
  insert into payment_subscription as s (provider_subscription_id, customer_id, facts)
  values (subscription, payment_customer_ensure(new_facts #>> '{customer,1}'), new_facts)
  on conflict on constraint payment_subscription_provider_subscription_id_key do update
  set facts = payment_join(s.facts, excluded.facts), customer_id = coalesce(s.customer_id, excluded.customer_id)
  where s.facts is distinct from payment_join(s.facts, excluded.facts);
end $$;
