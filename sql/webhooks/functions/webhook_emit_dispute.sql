-- Emits events for new disputes and changed states.
create or replace function webhook_emit_dispute() returns trigger language plpgsql as $$
declare
  account integer := webhook_customer_account(new.customer_id);
  t payment_transaction;
begin
  if account is null then return null; end if;
  select * into t from payment_transaction where id = new.transaction_id;
  perform webhook_emit(account, 'payment.changed',
    json_build_object('kind', 'dispute', 'dispute', payment_dispute_json(new, t)));
  return null;
end $$;

create or replace trigger webhook_dispute_made after insert on payment_dispute
  for each row execute function webhook_emit_dispute();
create or replace trigger webhook_dispute_changed after update on payment_dispute
  for each row when (new.status is distinct from old.status) execute function webhook_emit_dispute();
