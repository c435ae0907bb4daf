-- Locks the rows that have one of these provider ids, and returns them oldest first.
create or replace function payment_transactions_locked(ids text[]) returns bigint[] language plpgsql as $$
declare
  found_rows bigint[];
  still bigint[];
begin
  loop
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into found_rows
    from payment_reference where provider_id = any(ids);
    perform from payment_transaction where id = any(found_rows) order by id for update;
    -- Two of them may have been merged during the wait.
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into still
    from payment_reference where provider_id = any(ids);
    exit when still = found_rows;
  end loop;
  return found_rows;
end $$;
