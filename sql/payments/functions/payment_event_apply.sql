-- Applies a stored event once, and clears its data. Returns false if it was applied before.
create or replace function payment_event_apply(event text, changes jsonb) returns boolean language plpgsql as $$
begin
  update payment_event set applied_at = now(), data = null where id = event and applied_at is null;
  if not found then return false; end if;
  perform payment_apply(changes);
  return true;
end $$;
