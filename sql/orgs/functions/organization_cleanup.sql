-- Ends the API keys and webhook endpoints of an organization when it is deleted, before its members are purged.
create or replace function organization_cleanup() returns trigger language plpgsql as $$
begin
  delete from api_key where organization_id = new.id;
  update webhook_endpoint e set is_active = false, deleted_at = now()
  where e.organization_id = new.id and e.deleted_at is null;
  return null;
end $$;

create or replace trigger organization_cleanup after update of deleted_at on organization
  for each row when (new.deleted_at is not null) execute function organization_cleanup();
