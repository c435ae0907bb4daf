create or replace function rag_neighbour_table(size integer) returns text language sql immutable as $$
  select 'rag_neighbour_' || size
$$;
