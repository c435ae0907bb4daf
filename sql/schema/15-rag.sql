-- Retrieval: collections of files or of documents, cut into chunks. The inverted index is not stored: a thread beside each edge keeps
-- it in memory, built from the ordered terms of each chunk, and rebuilds it when the version of a collection has grown.
-- So a run that changes a twentieth of the files writes a twentieth of the rows.

create table rag_collection (
  id integer generated always as identity,
  name text collate "C" not null,
  -- Whose documents it has; null also for files, which everybody may search.
  owner_id integer,
  -- Which documents: `tag`, `kind`, `ids` and `search`, each may be null; null: it has files.
  selection jsonb,
  -- Incremented by every swap. 0: nothing was swapped in yet, and nobody sees the collection.
  version bigint not null default 0,
  -- The model that made the vectors, and their length; null: there are none.
  embedding_model text,
  dimensions integer,
  -- Whether all of its vectors are in a pgvector table, see below; otherwise they are searched in memory.
  has_neighbours boolean not null default false,
  -- Totals of what is swapped in: files, chunks, and the terms of all chunks.
  document_count integer not null default 0,
  chunk_count integer not null default 0,
  term_count bigint not null default 0,
  -- The request of the last run.
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Nobody sees it any more; a task deletes its rows.
  deleted_at timestamptz,
  constraint rag_collection_pkey primary key (id),
  constraint rag_collection_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint rag_collection_owner_id_check check (owner_id is null or selection is not null),
  constraint rag_collection_name_check check (length(name) between 1 and 100),
  constraint rag_collection_dimensions_check check ((embedding_model is null) = (dimensions is null) and dimensions between 1 and 16000),
  constraint rag_collection_counts_check check (least(document_count, chunk_count, term_count) >= 0)
);
create unique index rag_collection_name_key on rag_collection (name) where deleted_at is null;
-- What everybody sees, by name, and what an owner has.
create index rag_collection_files_idx on rag_collection (name) where selection is null and deleted_at is null;
create index rag_collection_owner_id_idx on rag_collection (owner_id, name);
create index rag_collection_deleted_idx on rag_collection (id) where deleted_at is not null;

create table rag_file (
  id bigint generated always as identity,
  collection_id integer not null,
  -- The job that made it, until it is swapped in; then null.
  build_id uuid,
  -- Its path below RAG_ROOT, or `documents/ID`.
  source text collate "C" not null,
  -- The document that it is instead of a file, and its title. No foreign key: rows of a collection go with a swap, never
  -- during a search, which looks for the document itself and shows nothing of one that is gone.
  document_id bigint,
  title text,
  -- Of the bytes of a file; of the title of a document and the times at which its pages were stored.
  sha256 bytea not null,
  byte_size bigint not null,
  format text not null,
  -- The version of the code that cut it into chunks and terms.
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
-- For deleting the files of a collection.
create index rag_file_collection_id_idx on rag_file (collection_id);
create unique index rag_file_build_key on rag_file (collection_id, source) where build_id is not null;

create table rag_chunk (
  file_id bigint not null,
  -- From 0 within the file.
  ordinal integer not null,
  content text not null,
  -- Its position: characters (UTF-16) of the file's text, lines from 1; the page of a PDF.
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

-- Hashes and floats do not compress, so the attempt is skipped; it is the content that is moved out of line.
alter table rag_chunk alter column terms set storage external;

-- The vectors of a file's chunks, in their order, one row for each model; written once, apart from the rows of the
-- chunks. While a collection moves to another model, a file may have the vectors of both.
create table rag_vector (
  file_id bigint not null,
  model text not null,
  dimensions integer not null,
  -- Little-endian floats of 4 bytes; the vector of each chunk has length 1.
  floats bytea not null,
  constraint rag_vector_pkey primary key (file_id, model),
  constraint rag_vector_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  constraint rag_vector_floats_check check (dimensions between 1 and 16000 and octet_length(floats) % (4 * dimensions) = 0)
);
alter table rag_vector alter column floats set storage external;
-- Rows are deleted with their files: few are dead at a time, and their space is reclaimed soon.
alter table rag_file set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_chunk set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_vector set (autovacuum_vacuum_scale_factor = 0.05);
-- Where pgvector is installed, vectors are also kept in one table for each length, with an index that finds neighbours
-- without scanning all of them. The table is created when the first vectors of a length arrive.
do $$ begin
  if exists (select from pg_available_extensions where name = 'vector') then create extension if not exists vector; end if;
exception when insufficient_privilege then null;
end $$;
