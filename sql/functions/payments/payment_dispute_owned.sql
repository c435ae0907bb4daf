-- A dispute is of the customer of its payment, so that a customer's disputes are found by an index.
create or replace function payment_dispute_owned() returns trigger language plpgsql as $$
begin
  -- Locked: a customer that becomes known at the same time is seen here, or sees this dispute.
  new.customer_id := (select customer_id from payment_transaction where id = new.transaction_id for share);
  return new;
end $$;

create or replace trigger payment_dispute_owned before insert or update of transaction_id, customer_id on payment_dispute
  for each row execute function payment_dispute_owned();
