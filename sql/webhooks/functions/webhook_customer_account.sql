-- Returns the account of a customer if an endpoint receives its payment events. Returns null otherwise, which is the
-- usual case.
create or replace function webhook_customer_account(customer bigint) returns integer language sql stable as $$
  select c.user_id from payment_customer c where c.id = customer and webhook_is_subscribed(c.user_id, 'payment.changed')
$$;
