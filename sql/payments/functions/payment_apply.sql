-- Applies a list of changes that the provider reported. Each change: kind, id, ids (of the payment), request, facts.
create or replace function payment_apply(changes jsonb) returns void language plpgsql as $$
declare
  change record;
begin
  -- Serializes changes to the same object. Locks in key order, so that two calls never deadlock.
  perform pg_advisory_xact_lock(key) from (
    select distinct hashtextextended('millrace.payment:' || named, 0) as key
    from jsonb_to_recordset(changes) as c(id text, ids text[]), unnest(c.ids || c.id) named
    where named is not null order by 1) locks;
  for change in select * from jsonb_to_recordset(changes) as c(kind text, id text, ids text[], request uuid, facts jsonb) loop
    case change.kind
      when 'customer' then perform payment_customer_ensure(change.id);
      when 'transaction' then perform payment_apply_transaction(change.ids, change.facts);
      when 'refund' then perform payment_apply_refund(change.id, change.ids, change.request, change.facts);
      when 'subscription' then perform payment_apply_subscription(change.id, change.facts);
      when 'dispute' then perform payment_apply_dispute(change.id, change.ids, change.facts);
    end case;
  end loop;
end $$;
