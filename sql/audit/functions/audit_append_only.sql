create or replace function audit_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'The audit trail is append-only' using errcode = 'insufficient_privilege';
end $$;

create or replace trigger audit_append_only before update or delete or truncate on audit_event
  for each statement execute function audit_append_only();
