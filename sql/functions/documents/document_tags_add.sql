-- The rows of a tag that nobody else has locked are replaced by one with their sum: no writer waits for another.
create or replace function document_tags_add(owners integer[], labels text[], more bigint[]) returns void language sql as $$
  with given as (
    select * from unnest(owners, labels, more) given (owner_id, label, documents)
  ), free as (
    select c.id from given join document_tag_count c using (owner_id, label) order by c.id for update of c skip locked
  ), folded as (
    delete from document_tag_count c using free where c.id = free.id returning c.owner_id, c.label, c.documents
  )
  insert into document_tag_count (owner_id, label, documents)
  select owner_id, label, sum(documents) from (select * from given union all select * from folded) rows
  group by owner_id, label having sum(documents) <> 0
$$;
