-- Deletes the endpoints that an account created for an organization when its membership ends.
create or replace function webhook_member_cleanup() returns trigger language plpgsql as $$
begin
  update webhook_endpoint e set is_active = false, deleted_at = now()
  where e.organization_id = old.organization_id and e.account_id = old.user_id and e.deleted_at is null;
  return null;
end $$;

create or replace trigger webhook_member_cleanup after delete on organization_member
  for each row execute function webhook_member_cleanup();
