-- Emits events for new payments and refunds, and for changed states.
create or replace function webhook_emit_transaction() returns trigger language plpgsql as $$
declare
  account integer := webhook_customer_account(new.customer_id);
begin
  if account is null then return null; end if;
  perform webhook_emit(account, 'payment.changed',
    json_build_object('kind', 'transaction', 'transaction', payment_transaction_json(new)));
  return null;
end $$;

create or replace trigger webhook_transaction_made after insert on payment_transaction
  for each row when (new.shown) execute function webhook_emit_transaction();
create or replace trigger webhook_transaction_changed after update on payment_transaction
  for each row when (new.shown and (not old.shown or new.status is distinct from old.status))
  execute function webhook_emit_transaction();
