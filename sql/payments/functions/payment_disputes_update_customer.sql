-- Copies a changed customer of a payment to its disputes.
create or replace function payment_disputes_update_customer() returns trigger language plpgsql as $$
begin
  update payment_dispute set customer_id = new.customer_id where transaction_id = new.id;
  return null;
end $$;

create or replace trigger payment_disputes_update_customer after update of customer_id on payment_transaction
  for each row when (old.customer_id is distinct from new.customer_id) execute function payment_disputes_update_customer();
