-- Retrieval: collections of files in chunks. The inverted index is not here: a thread beside each edge holds it in memory,
-- made of the terms that each chunk has in order, and made again when the version of a collection has grown. So a run
-- that changes a twentieth of the files writes a twentieth of the rows.

create table rag_collection (
  id integer generated always as identity,
  name text collate "C" not null,
  -- Grows with every swap. 0: nothing was swapped in yet, and nobody sees it.
  version bigint not null default 0,
  -- What made the vectors, and how long they are; null: it has none.
  embedding_model text,
  dimensions integer,
  -- Whether all of its vectors are in a table of pgvector's, see below; else they are searched in memory.
  has_neighbours boolean not null default false,
  -- Statistics of what is swapped in: files, chunks, and all terms of all chunks.
  document_count integer not null default 0,
  chunk_count integer not null default 0,
  term_count bigint not null default 0,
  -- What the last run was asked for.
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Nobody sees it any more; a task removes its rows.
  deleted_at timestamptz,
  constraint rag_collection_pkey primary key (id),
  constraint rag_collection_name_check check (length(name) between 1 and 100),
  constraint rag_collection_dimensions_check check ((embedding_model is null) = (dimensions is null) and dimensions between 1 and 16000),
  constraint rag_collection_counts_check check (least(document_count, chunk_count, term_count) >= 0)
);
create unique index rag_collection_name_key on rag_collection (name) where deleted_at is null;
create index rag_collection_deleted_idx on rag_collection (id) where deleted_at is not null;

create table rag_file (
  id bigint generated always as identity,
  collection_id integer not null,
  -- The job that has made it, until it is swapped in; then null.
  build_id uuid,
  -- Its path below RAG_ROOT.
  source text collate "C" not null,
  sha256 bytea not null,
  byte_size bigint not null,
  format text not null,
  -- The version of the code that has cut it into chunks and terms.
  analysis integer not null,
  chunk_count integer not null,
  term_count integer not null,
  created_at timestamptz not null default now(),
  constraint rag_file_pkey primary key (id),
  constraint rag_file_collection_id_fkey foreign key (collection_id) references rag_collection (id) on delete cascade,
  constraint rag_file_sha256_check check (octet_length(sha256) = 32)
);
create unique index rag_file_source_key on rag_file (collection_id, source) where build_id is null;
-- For those of a collection that goes.
create index rag_file_collection_id_idx on rag_file (collection_id);
create unique index rag_file_build_key on rag_file (collection_id, source) where build_id is not null;

create table rag_chunk (
  file_id bigint not null,
  -- From 0 within the file.
  ordinal integer not null,
  content text not null,
  -- Where it stands: characters (UTF-16) of the file's text, lines from 1; the page of a PDF.
  start_offset integer not null,
  end_offset integer not null,
  start_line integer not null,
  end_line integer not null,
  page integer,
  -- The headings above it, outermost first, joined by ' > '.
  heading text,
  -- The hashes of its terms in order, 4 bytes each, least first.
  terms bytea not null,
  constraint rag_chunk_pkey primary key (file_id, ordinal),
  constraint rag_chunk_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  constraint rag_chunk_terms_check check (octet_length(terms) % 4 = 0)
);
-- Hashes and floats do not get shorter, so the try is saved; what goes out of line is the content.
alter table rag_chunk alter column terms set storage external;

-- The vectors of a file's chunks, in their order, by the model that made them; written once, beside the rows of the
-- chunks. While a collection moves to another model, a file may have those of two.
create table rag_vector (
  file_id bigint not null,
  model text not null,
  dimensions integer not null,
  -- Floats of 4 bytes, least first; those of a chunk are of length 1 together.
  floats bytea not null,
  constraint rag_vector_pkey primary key (file_id, model),
  constraint rag_vector_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  constraint rag_vector_floats_check check (dimensions between 1 and 16000 and octet_length(floats) % (4 * dimensions) = 0)
);
alter table rag_vector alter column floats set storage external;
-- Rows leave with their files: little is dead at a time, and it is soon taken back.
alter table rag_file set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_chunk set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_vector set (autovacuum_vacuum_scale_factor = 0.05);

-- Where pgvector is installed, vectors are also in a table for each length, with an index that finds neighbours without
-- looking at all of them. It is made when the first vectors of a length come.
do $$ begin
  if exists (select from pg_available_extensions where name = 'vector') then create extension if not exists vector; end if;
exception when insufficient_privilege then null;
end $$;

create function rag_neighbour_table(size integer) returns text language sql immutable as $$
  select 'rag_neighbour_' || size
$$;

-- Answers whether there is such a table now. An index takes no longer vectors than these.
create function rag_neighbours_prepare(size integer) returns boolean language plpgsql as $$
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

-- Adds vectors as text, of files whose rows of rag_vector are there.
create function rag_neighbours_add(size integer, of_model text, files bigint[], ordinals integer[], vectors text[])
returns void language plpgsql as $$
begin
  execute format('insert into %I (file_id, model, ordinal, collection_id, embedding)
    select n.file_id, $1, n.ordinal, f.collection_id, n.embedding::vector
    from unnest($2, $3, $4) as n(file_id, ordinal, embedding) join rag_file f on f.id = n.file_id
    join rag_vector v on v.file_id = n.file_id and v.model = $1
    on conflict (file_id, model, ordinal) do update set embedding = excluded.embedding', rag_neighbour_table(size))
  using of_model, files, ordinals, vectors;
end $$;

-- The chunks of a collection nearest to a vector, best first. Of some chunks alone all are looked at.
create function rag_neighbours(collection integer, of_model text, size integer, wanted text, most integer,
  files bigint[] default null, ordinals integer[] default null)
returns table (file_id bigint, ordinal integer, score double precision) language plpgsql as $$
begin
  -- Without these the index would stop at its first candidates, whatever is left of them.
  perform set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', least(1000, most * 2)::text, true);
  return query execute case when files is null then
    format('select n.file_id, n.ordinal, -(n.embedding <#> $3::vector) from %I n join rag_file f on f.id = n.file_id
      where n.collection_id = $1 and n.model = $2 and f.build_id is null
      order by n.embedding <#> $3::vector limit $4', rag_neighbour_table(size))
  else
    format('with chosen as materialized (select n.* from unnest($5, $6) as w(file_id, ordinal)
        join %I n on n.file_id = w.file_id and n.model = $2 and n.ordinal = w.ordinal)
      select n.file_id, n.ordinal, -(n.embedding <#> $3::vector) from chosen n
      order by n.embedding <#> $3::vector, 1, 2 limit $4', rag_neighbour_table(size))
  end using collection, of_model, wanted, most, files, ordinals;
end $$;

-- Whether every vector of a collection is in the table of its length.
create function rag_has_neighbours(collection integer, of_model text, size integer) returns boolean language plpgsql as $$
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

-- Makes a build part of its collection: what it replaces and what is gone leave, and the version grows. With a model, only its
-- vectors stay; without one, those that are there do. Answers the new counts, and no row when the collection was deleted
-- meanwhile.
create function rag_swap(collection integer, build uuid, gone bigint[], request jsonb, new_model text)
returns table (document_count integer, chunk_count integer) language plpgsql as $$
begin
  perform from rag_collection c where c.id = collection and c.deleted_at is null for update;
  if not found then return; end if;
  delete from rag_file f where f.collection_id = collection and f.build_id is null and (f.id = any(gone)
    or exists (select from rag_file n where n.collection_id = collection and n.build_id = build and n.source = f.source));
  update rag_file f set build_id = null where f.collection_id = collection and f.build_id = build;
  if new_model is not null then
    delete from rag_vector v using rag_file f where f.collection_id = collection and f.build_id is null
      and v.file_id = f.id and v.model <> new_model;
  end if;
  return query
    update rag_collection c set version = c.version + 1, updated_at = now(), metadata = request,
      document_count = s.files, chunk_count = s.chunks, term_count = s.terms, embedding_model = s.model, dimensions = s.size,
      has_neighbours = rag_has_neighbours(collection, s.model, s.size)
    from (select count(*)::int as files, coalesce(sum(f.chunk_count), 0)::int as chunks,
        coalesce(sum(f.term_count), 0)::bigint as terms, max(v.model) as model, max(v.dimensions) as size
      from rag_file f left join rag_vector v on v.file_id = f.id
      where f.collection_id = collection and f.build_id is null) s
    where c.id = collection
    returning c.document_count, c.chunk_count;
end $$;
