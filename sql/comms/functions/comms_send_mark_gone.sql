-- Marks the messages of a deleted account. Otherwise they would look like those of callers without an account, which
-- everyone may see.
create or replace function comms_send_mark_gone() returns trigger language plpgsql as $$
begin
  new.purpose := 'gone';
  return new;
end $$;

create or replace trigger comms_send_mark_gone before update of owner_id on comms_send for each row
  when (old.owner_id is not null and new.owner_id is null)
  execute function comms_send_mark_gone();
