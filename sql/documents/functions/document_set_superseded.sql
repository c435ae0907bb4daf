-- Maintains `superseded_by_id` of the document that a live document supersedes.
create or replace function document_set_superseded() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    update document set superseded_by_id = null where id = old.supersedes_id and superseded_by_id = old.id
      and (new.deleted_at is not null or new.supersedes_id is distinct from old.supersedes_id);
  end if;
  if new.deleted_at is null then
    update document set superseded_by_id = new.id
    where id = new.supersedes_id and superseded_by_id is distinct from new.id;
  end if;
  return null;
end $$;

create or replace trigger document_set_superseded_insert after insert on document
  for each row when (new.supersedes_id is not null) execute function document_set_superseded();

create or replace trigger document_set_superseded_update after update of supersedes_id, deleted_at on document
  for each row when (new.supersedes_id is not null or old.supersedes_id is not null) execute function document_set_superseded();
