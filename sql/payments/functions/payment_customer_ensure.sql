create or replace function payment_customer_ensure(provider_customer text) returns bigint language plpgsql as $$
declare
  customer bigint;
begin
  if provider_customer is null then return null; end if;
  select coalesce(replaced_by, id) into customer from payment_customer where provider_customer_id = provider_customer;
  if customer is not null then return customer; end if;
  insert into payment_customer (provider_customer_id) values (provider_customer) on conflict do nothing;
  -- A separate statement, so that it sees the row that the insert waited for.
  select coalesce(replaced_by, id) into customer from payment_customer where provider_customer_id = provider_customer;
  return customer;
end $$;
