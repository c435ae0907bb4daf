-- Returns the files that a swap changes: those that it adds, and the live ones that it removes or replaces.
create or replace function rag_changed_files(collection integer, build uuid, removed_files bigint[])
returns table (file_id bigint, is_added boolean, chunk_count integer) language sql stable as $$
  select id, true, chunk_count from rag_file where collection_id = collection and build_id = build
  union all
  select f.id, false, f.chunk_count from rag_file f where f.collection_id = collection and f.build_id is null and (f.id = any(removed_files)
    or exists (select from rag_file n where n.collection_id = collection and n.build_id = build and n.source = f.source))
$$;
