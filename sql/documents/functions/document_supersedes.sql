-- Ensures that a document supersedes only a live document of the same owner, and never in a cycle. The unique index
-- document_supersedes_id_key ensures that at most one document supersedes it.
create or replace function document_supersedes() returns trigger language plpgsql as $$
begin
  -- Skips updates that do not change the value, because the superseded document may be in the trash by now.
  if tg_op = 'UPDATE' and new.supersedes_id = old.supersedes_id then return new; end if;
  -- Admits one change per owner at a time, because two concurrent ones could close a cycle.
  perform pg_advisory_xact_lock(hashtextextended('millrace.supersede:' || coalesce(new.owner_id, 0), 0));
  if not exists (select from document target where target.id = new.supersedes_id and target.deleted_at is null
      and target.owner_id is not distinct from new.owner_id) then
    raise exception 'The document to supersede does not exist'
      using errcode = 'check_violation', constraint = 'document_supersedes_missing';
  end if;
  if exists (
    with recursive older as (
      select new.supersedes_id as id union select document.supersedes_id from document join older on document.id = older.id
    ) select from older where id = new.id) then
    raise exception 'Documents supersede each other in a cycle'
      using errcode = 'check_violation', constraint = 'document_supersedes_circle';
  end if;
  return new;
end $$;

create or replace trigger document_supersedes before insert or update of supersedes_id on document
  for each row when (new.supersedes_id <> new.id) execute function document_supersedes();
