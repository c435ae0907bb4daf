-- Copies the customer of the payment to its dispute, so that an index finds a customer's disputes.
create or replace function payment_dispute_set_customer() returns trigger language plpgsql as $$
begin
  -- Locks the payment, so that a customer set concurrently is either visible here, or its transaction sees this
  -- dispute.
  new.customer_id := (select customer_id from payment_transaction where id = new.transaction_id for share);
  return new;
end $$;

create or replace trigger payment_dispute_set_customer before insert or update of transaction_id, customer_id on payment_dispute
  for each row execute function payment_dispute_set_customer();
