-- Locks the rows that have one of these provider ids, and returns them oldest first.
create or replace function payment_transactions_lock(ids text[]) returns bigint[] language plpgsql as $$
declare
  row_ids bigint[];
  row_ids_now bigint[];
begin
  loop
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into row_ids
    from payment_reference where provider_id = any(ids);
    perform from payment_transaction where id = any(row_ids) order by id for update;
    -- Two of these transactions may have been merged during the wait.
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into row_ids_now
    from payment_reference where provider_id = any(ids);
    exit when row_ids_now = row_ids;
  end loop;
  return row_ids;
end $$;
