-- Returns the chunks of a collection nearest to a vector, best first. If `numbers` is not null, compares exactly those chunks.
create or replace function rag_neighbours(collection integer, of_model text, size integer, query_vector text, max_chunks integer,
  numbers integer[] default null)
returns table (number integer, score double precision) language plpgsql as $$
begin
  -- Without these settings, the index would stop at its first candidates, however few of them match.
  perform set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', least(1000, max_chunks * 2)::text, true);
  return query execute case when numbers is null then
    format('select c.number, -(n.embedding <#> $3::vector) from %I n join rag_file f on f.id = n.file_id
      join rag_chunk c on c.file_id = n.file_id and c.ordinal = n.ordinal
      where n.collection_id = $1 and n.model = $2 and f.build_id is null
      order by n.embedding <#> $3::vector limit $4', rag_neighbour_table(size))
  else
    format('with chosen as materialized (select c.number, n.embedding from rag_chunk c
        join %I n on n.file_id = c.file_id and n.model = $2 and n.ordinal = c.ordinal
        where c.collection_id = $1 and c.number = any($5))
      select n.number, -(n.embedding <#> $3::vector) from chosen n
      order by n.embedding <#> $3::vector, 1 limit $4', rag_neighbour_table(size))
  end using collection, of_model, query_vector, max_chunks, numbers;
end $$;
