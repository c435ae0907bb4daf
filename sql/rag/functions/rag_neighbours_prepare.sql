-- Creates the table for vectors of this length if necessary. Returns false without pgvector, or if the length exceeds
-- 2000, the maximum of its index. Runs with its owner's rights, because the workers' role cannot create tables.
create or replace function rag_neighbours_prepare(size integer) returns boolean language plpgsql
  security definer set search_path = public, pg_temp
as $$
declare
  name text := rag_neighbour_table(size);
  -- The extension's schema may not be on the search path above.
  of_schema text := (select extnamespace::regnamespace from pg_extension where extname = 'vector');
begin
  if size > 2000 or of_schema is null then return false; end if;
  if to_regclass(name) is not null then return true; end if;
  perform pg_advisory_xact_lock(hashtext(name));
  execute format('create table if not exists %I (file_id bigint not null, model text not null, ordinal integer not null,
    collection_id integer not null, embedding %s.vector(%s) not null, primary key (file_id, model, ordinal),
    foreign key (file_id, model) references rag_vector (file_id, model) on delete cascade)', name, of_schema, size);
  execute format('create index if not exists %I on %I using hnsw (embedding %s.vector_ip_ops)', name || '_embedding_idx', name, of_schema);
  return true;
end $$;
revoke execute on function rag_neighbours_prepare(integer) from public;
