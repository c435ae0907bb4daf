-- Keeps document_tag_count.
create or replace function document_tags_counted() returns trigger language plpgsql as $$
declare
  owners integer[];
  labels text[];
  more bigint[];
begin
  if tg_op = 'INSERT' then
    select array_agg(owner), array_agg(label), array_agg(n) into owners, labels, more from (
      select coalesce(owner_id, 0) as owner, label, count(*) as n from added, unnest(tags) label
      where deleted_at is null group by 1, 2) changes;
  elsif tg_op = 'DELETE' then
    select array_agg(owner), array_agg(label), array_agg(n) into owners, labels, more from (
      select coalesce(owner_id, 0) as owner, label, -count(*) as n from removed, unnest(tags) label
      where deleted_at is null group by 1, 2) changes;
  else
    select array_agg(owner), array_agg(label), array_agg(n) into owners, labels, more from (
      select coalesce(owner_id, 0) as owner, label, sum(n) as n from (
        select owner_id, tags, deleted_at, 1 as n from added
        union all select owner_id, tags, deleted_at, -1 from removed) rows, unnest(tags) label
      where deleted_at is null group by 1, 2 having sum(n) <> 0) changes;
  end if;
  if owners is not null then perform document_tags_add(owners, labels, more); end if;
  return null;
end $$;

create or replace trigger document_tags_inserted after insert on document referencing new table as added
  for each statement execute function document_tags_counted();

create or replace trigger document_tags_updated after update on document referencing old table as removed new table as added
  for each statement execute function document_tags_counted();

create or replace trigger document_tags_deleted after delete on document referencing old table as removed
  for each statement execute function document_tags_counted();
