-- The keys of an organization end with it, not when its members are purged.
create or replace function organization_keys_end() returns trigger language plpgsql as $$
begin
  delete from api_key where organization_id = new.id;
  return null;
end $$;

create or replace trigger organization_keys_end after update of deleted_at on organization
  for each row when (new.deleted_at is not null) execute function organization_keys_end();
