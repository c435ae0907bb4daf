-- Deletes the webhooks and callbacks that a deleted key created, and clears the account from the caches of all edges.
-- Runs whichever way the key was deleted.
create or replace function api_key_cleanup() returns trigger language plpgsql as $$
begin
  update webhook_endpoint set is_active = false, deleted_at = now() where api_key_id = old.id and deleted_at is null;
  delete from job_callback where api_key_id = old.id;
  perform pg_notify('account_changed', old.account_id::text);
  return null;
end $$;

create or replace trigger api_key_cleanup after delete on api_key for each row execute function api_key_cleanup();
