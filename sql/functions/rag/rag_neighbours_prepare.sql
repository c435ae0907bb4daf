-- Returns whether the table for vectors of this length exists now. An index takes no longer vectors than these.
create or replace function rag_neighbours_prepare(size integer) returns boolean language plpgsql as $$
declare
  name text := rag_neighbour_table(size);
begin
  if size > 2000 or not exists (select from pg_extension where extname = 'vector') then return false; end if;
  if to_regclass(name) is not null then return true; end if;
  perform pg_advisory_xact_lock(hashtext(name));
  execute format('create table if not exists %I (file_id bigint not null, model text not null, ordinal integer not null,
    collection_id integer not null, embedding vector(%s) not null, primary key (file_id, model, ordinal),
    foreign key (file_id, model) references rag_vector (file_id, model) on delete cascade)', name, size);
  execute format('create index if not exists %I on %I using hnsw (embedding vector_ip_ops)', name || '_embedding_idx', name);
  return true;
end $$;
