-- Maintains document_tag. Its rows copy the columns by which documents with a tag are sorted and filtered.
create or replace function document_tags_sync() returns trigger language plpgsql as $$
begin
  delete from document_tag where document_id = new.id and (new.deleted_at is not null or label <> all (new.tags));
  insert into document_tag as tag (document_id, label, owner_id, kind, day, title, byte_size, page_count, superseded)
  select distinct new.id, label, coalesce(new.owner_id, 0), new.kind, new.day, lower(new.title), new.byte_size,
    coalesce(new.page_count, 0), new.superseded_by_id is not null
  from unnest(new.tags) label where new.deleted_at is null
  on conflict (document_id, label) do update set owner_id = excluded.owner_id, kind = excluded.kind, day = excluded.day,
    title = excluded.title, byte_size = excluded.byte_size, page_count = excluded.page_count, superseded = excluded.superseded
  where (tag.owner_id, tag.kind, tag.day, tag.title, tag.byte_size, tag.page_count, tag.superseded) is distinct from
    (excluded.owner_id, excluded.kind, excluded.day, excluded.title, excluded.byte_size, excluded.page_count, excluded.superseded);
  return null;
end $$;

create or replace trigger document_tags_sync_insert after insert on document
  for each row when (new.tags <> '{}') execute function document_tags_sync();

create or replace trigger document_tags_sync_update after update on document
  for each row when ((old.tags <> '{}' or new.tags <> '{}')
    and (old.tags, old.owner_id, old.kind, old.day, old.title, old.byte_size, old.page_count, old.superseded_by_id is null, old.deleted_at)
      is distinct from (new.tags, new.owner_id, new.kind, new.day, new.title, new.byte_size, new.page_count, new.superseded_by_id is null, new.deleted_at))
  execute function document_tags_sync();
