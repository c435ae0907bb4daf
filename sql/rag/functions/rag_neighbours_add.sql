-- Adds vectors, given as text, for files that have rows in rag_vector.
create or replace function rag_neighbours_add(size integer, of_model text, files bigint[], ordinals integer[], vectors text[])
returns void language plpgsql as $$
begin
  execute format('insert into %I (file_id, model, ordinal, collection_id, embedding)
    select n.file_id, $1, n.ordinal, f.collection_id, n.embedding::vector
    from unnest($2, $3, $4) as n(file_id, ordinal, embedding) join rag_file f on f.id = n.file_id
    join rag_vector v on v.file_id = n.file_id and v.model = $1
    on conflict (file_id, model, ordinal) do update set embedding = excluded.embedding', rag_neighbour_table(size))
  using of_model, files, ordinals, vectors;
end $$;
