-- Lets a restored document supersede its previous target again, unless that is gone or has another successor by now.
create or replace function document_restore_supersedes() returns trigger language plpgsql as $$
begin
  -- Admits one change per owner at a time, as in document_supersedes.
  perform pg_advisory_xact_lock(hashtextextended('millrace.supersede:' || coalesce(new.owner_id, 0), 0));
  if not exists (select from document target where target.id = new.supersedes_id and target.deleted_at is null)
      or exists (select from document other where other.supersedes_id = new.supersedes_id and other.deleted_at is null) then
    new.supersedes_id := null;
  end if;
  return new;
end $$;

create or replace trigger document_restore_supersedes before update of deleted_at on document
  for each row when (old.deleted_at is not null and new.deleted_at is null and new.supersedes_id is not null)
  execute function document_restore_supersedes();
