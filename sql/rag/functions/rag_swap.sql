-- Makes a build part of its collection: deletes replaced and removed files, and increments the version. With a new
-- model, keeps only the vectors of that model. Without one, the collection keeps its model while any of its vectors are
-- left. A run that lost its model halfway leaves files with vectors of two models. The next run completes those of the
-- other model. Call `rag_merge_postings` before. Returns the new counts. No row if the collection was deleted meanwhile.
create or replace function rag_swap(collection integer, build uuid, removed_files bigint[], request jsonb, new_model text)
returns table (document_count integer, chunk_count integer) language plpgsql as $$
begin
  perform from rag_collection c where c.id = collection and c.deleted_at is null for update;
  if not found then return; end if;
  delete from rag_file f using rag_changed_files(collection, build, removed_files) change
  where f.id = change.file_id and not change.is_added;
  update rag_file f set build_id = null, term_count = counted.terms
  from (select a.id, coalesce(sum(cardinality(c.terms)), 0) as terms from rag_file a left join rag_chunk c on c.file_id = a.id
    where a.collection_id = collection and a.build_id = build group by a.id) counted
  where f.id = counted.id;
  if new_model is not null then
    delete from rag_vector v using rag_file f where f.collection_id = collection and f.build_id is null
      and v.file_id = f.id and v.model <> new_model;
  end if;
  return query
    update rag_collection c set version = c.version + 1, updated_at = now(), metadata = request,
      document_count = s.files, chunk_count = s.chunks, term_count = s.terms, dictionaries = s.dictionaries,
      embedding_model = m.model, dimensions = m.size, has_neighbours = rag_has_neighbours(collection, m.model, m.size)
    from (select count(*)::int as files, coalesce(sum(f.chunk_count), 0)::int as chunks,
        coalesce(sum(f.term_count), 0) as terms,
        coalesce(array_agg(distinct f.dictionary order by f.dictionary) filter (where f.chunk_count > 0), '{}') as dictionaries
      from rag_file f where f.collection_id = collection and f.build_id is null) s
    left join (select v.model, max(v.dimensions) as size
      from rag_collection o join rag_file f on f.collection_id = o.id and f.build_id is null join rag_vector v on v.file_id = f.id
      where o.id = collection
      group by v.model, o.embedding_model
      order by v.model = coalesce(o.embedding_model, '') desc, count(*) desc, v.model limit 1) m on true
    where c.id = collection
    returning c.document_count, c.chunk_count;
end $$;
