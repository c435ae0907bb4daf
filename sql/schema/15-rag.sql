-- Retrieval: collections of files or of documents, split into chunks. The inverted index is not stored: a thread next
-- to each edge keeps it in memory. The thread builds it from the ordered terms of each chunk, and rebuilds it when the
-- version of a collection grows. So a run that changes a twentieth of the files writes a twentieth of the rows.

create table rag_collection (
  id integer generated always as identity,
  name text collate "C" not null,
  -- The owner of its documents; null also for files, which everyone may search.
  owner_id integer,
  -- The selected documents: `tag`, `kind`, `ids` and `search`, each nullable. Null: a collection of files.
  selection jsonb,
  -- Incremented by every swap. 0: no build is swapped in yet, and the collection is invisible.
  version bigint not null default 0,
  -- The model of the vectors, and their length; null: no vectors.
  embedding_model text,
  dimensions integer,
  -- True if all of its vectors are in a pgvector table (see below). Otherwise they are searched in memory.
  has_neighbours boolean not null default false,
  -- Totals of the swapped-in files, their chunks, and the terms of all chunks.
  document_count integer not null default 0,
  chunk_count integer not null default 0,
  term_count bigint not null default 0,
  -- The request of the last run.
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- A deleted collection is invisible. A task deletes its rows.
  deleted_at timestamptz,
  constraint rag_collection_pkey primary key (id),
  constraint rag_collection_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint rag_collection_owner_id_check check (owner_id is null or selection is not null),
  constraint rag_collection_name_check check (length(name) between 1 and 100),
  constraint rag_collection_dimensions_check check ((embedding_model is null) = (dimensions is null) and dimensions between 1 and 16000),
  constraint rag_collection_counts_check check (least(document_count, chunk_count, term_count) >= 0)
);
create unique index rag_collection_name_key on rag_collection (name) where deleted_at is null;
-- Public collections by name, and the collections of an owner.
create index rag_collection_files_idx on rag_collection (name) where selection is null and deleted_at is null;
create index rag_collection_owner_id_idx on rag_collection (owner_id, name);
create index rag_collection_deleted_idx on rag_collection (id) where deleted_at is not null;

create table rag_file (
  id bigint generated always as identity,
  collection_id integer not null,
  -- The job that built it; null once it is swapped in.
  build_id uuid,
  -- Its path below RAG_ROOT, or `documents/ID`.
  source text collate "C" not null,
  -- The document and its title, if the source is a document; null: a file. No foreign key: rows of a collection are
  -- deleted only by a swap, never during a search. The search looks up the document itself and skips deleted ones.
  document_id bigint,
  title text,
  -- Files: the digest of their bytes. Documents: the digest of the title and the storage times of the pages.
  sha256 bytea not null,
  byte_size bigint not null,
  format text not null,
  -- The version of the code that split it into chunks and terms.
  analysis integer not null,
  chunk_count integer not null,
  term_count integer not null,
  created_at timestamptz not null default now(),
  constraint rag_file_pkey primary key (id),
  constraint rag_file_collection_id_fkey foreign key (collection_id) references rag_collection (id) on delete cascade,
  constraint rag_file_document_id_check check ((document_id is null) = (title is null)),
  constraint rag_file_sha256_check check (octet_length(sha256) = 32)
);
create unique index rag_file_source_key on rag_file (collection_id, source) where build_id is null;
-- Speeds up deleting the files of a collection.
create index rag_file_collection_id_idx on rag_file (collection_id);
create unique index rag_file_build_key on rag_file (collection_id, source) where build_id is not null;

create table rag_chunk (
  file_id bigint not null,
  -- From 0 within the file.
  ordinal integer not null,
  content text not null,
  -- The position: character offsets (UTF-16) in the file's text, lines from 1, the page of a PDF.
  start_offset integer not null,
  end_offset integer not null,
  start_line integer not null,
  end_line integer not null,
  page integer,
  -- The headings above it, outermost first, joined by ' > '.
  heading text,
  -- The hashes of its terms in order, 4 bytes each, little-endian.
  terms bytea not null,
  constraint rag_chunk_pkey primary key (file_id, ordinal),
  constraint rag_chunk_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  constraint rag_chunk_terms_check check (octet_length(terms) % 4 = 0)
);

-- Hashes and floats do not compress, so skip the attempt. Long rows move their content out of line instead.
alter table rag_chunk alter column terms set storage external;

-- The vectors of a file's chunks in chunk order, one row per model. Written once, separately from the chunks. While a
-- collection moves to another model, a file may have the vectors of both.
create table rag_vector (
  file_id bigint not null,
  model text not null,
  dimensions integer not null,
  -- Little-endian floats of 4 bytes; each chunk's vector has length 1.
  floats bytea not null,
  constraint rag_vector_pkey primary key (file_id, model),
  constraint rag_vector_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  constraint rag_vector_floats_check check (dimensions between 1 and 16000 and octet_length(floats) % (4 * dimensions) = 0)
);
alter table rag_vector alter column floats set storage external;
-- Rows are deleted together with their files. Few are dead at a time, and vacuum reclaims their space soon.
alter table rag_file set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_chunk set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_vector set (autovacuum_vacuum_scale_factor = 0.05);
-- Where pgvector is installed, vectors are also stored in one table per length. Its index finds neighbours without a
-- full scan. The first vectors of a length create the table.
do $$ begin
  if exists (select from pg_available_extensions where name = 'vector') then create extension if not exists vector; end if;
exception when insufficient_privilege then null;
end $$;
