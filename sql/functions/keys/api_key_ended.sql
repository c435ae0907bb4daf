-- Every edge forgets what it knows of the account whose key is gone, whatever has deleted it.
create or replace function api_key_ended() returns trigger language plpgsql as $$
begin
  perform pg_notify('account_changed', old.account_id::text);
  return null;
end $$;

create or replace trigger api_key_ended after delete on api_key for each row execute function api_key_ended();
