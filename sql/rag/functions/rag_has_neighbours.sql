-- True if the pgvector table for vectors of length `size` contains every vector of a collection.
create or replace function rag_has_neighbours(collection integer, of_model text, size integer) returns boolean language plpgsql as $$
declare
  complete boolean;
begin
  if size is null or to_regclass(rag_neighbour_table(size)) is null then return false; end if;
  execute format('select not exists (select from rag_file f join rag_vector v on v.file_id = f.id and v.model = $2
    where f.collection_id = $1 and f.build_id is null
      and (v.dimensions <> $3 or f.chunk_count <> (select count(*) from %I n where n.file_id = f.id and n.model = $2)))',
    rag_neighbour_table(size)) into complete using collection, of_model, size;
  return complete;
end $$;
