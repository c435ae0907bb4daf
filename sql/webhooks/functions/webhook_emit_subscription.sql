-- Emits events for new subscriptions and for changed states, ends or periods.
create or replace function webhook_emit_subscription() returns trigger language plpgsql as $$
declare
  account integer := webhook_customer_account(new.customer_id);
begin
  if account is null then return null; end if;
  perform webhook_emit(account, 'payment.changed',
    json_build_object('kind', 'subscription', 'subscription', payment_subscription_json(new)));
  return null;
end $$;

create or replace trigger webhook_subscription_made after insert on payment_subscription
  for each row execute function webhook_emit_subscription();
create or replace trigger webhook_subscription_changed after update on payment_subscription
  for each row when (new.status is distinct from old.status
    or new.cancel_at_period_end is distinct from old.cancel_at_period_end
    or new.cancel_at is distinct from old.cancel_at
    or new.current_period_end is distinct from old.current_period_end)
  execute function webhook_emit_subscription();
