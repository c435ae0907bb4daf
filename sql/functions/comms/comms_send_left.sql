-- What an account has sent is nobody's once it is gone, but not what everybody sees, as that of callers without an account is.
create or replace function comms_send_left() returns trigger language plpgsql as $$
begin
  new.purpose := 'gone';
  return new;
end $$;

create or replace trigger comms_send_left before update of owner_id on comms_send for each row
  when (old.owner_id is not null and new.owner_id is null)
  execute function comms_send_left();
