-- Copies the vectors of live files to the files of a build with the same source, if the embedded texts of all chunks are equal.
-- So a new title of a document, which changes only the terms of its chunks, embeds nothing again.
create or replace function rag_copy_vectors(collection integer, build uuid, of_model text) returns void language plpgsql as $$
declare
  copied record;
begin
  for copied in
    with same as materialized (
      select n.id as new_id, o.id as old_id from rag_file n
        join rag_file o on o.collection_id = collection and o.source = n.source and o.build_id is null and o.chunk_count = n.chunk_count
      where n.collection_id = collection and n.build_id = build and n.chunk_count > 0 and not exists (
        select from rag_chunk a join rag_chunk b on b.file_id = o.id and b.ordinal = a.ordinal
        where a.file_id = n.id and (a.heading, a.content) is distinct from (b.heading, b.content))
    ), added as (
      insert into rag_vector (file_id, model, dimensions, floats)
      select new_id, v.model, v.dimensions, v.floats from same join rag_vector v on v.file_id = old_id and v.model = of_model
      on conflict (file_id, model) do nothing
      returning file_id, dimensions
    )
    select dimensions, array_agg(new_id) as new_ids, array_agg(old_id) as old_ids
    from added join same on new_id = file_id group by dimensions
  loop
    continue when to_regclass(rag_neighbour_table(copied.dimensions)) is null;
    execute format('insert into %1$I (file_id, model, ordinal, collection_id, embedding)
      select s.new_id, n.model, n.ordinal, n.collection_id, n.embedding
      from unnest($1, $2) as s(new_id, old_id) join %1$I n on n.file_id = s.old_id and n.model = $3
      on conflict (file_id, model, ordinal) do nothing', rag_neighbour_table(copied.dimensions))
    using copied.new_ids, copied.old_ids, of_model;
  end loop;
end $$;
