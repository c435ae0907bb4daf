-- Retrieval: collections of files or documents, split into chunks, and the inverted index of their terms. A run stores new
-- rows next to the live ones and replaces those in one swap. A run that changes a twentieth of the files thus writes only a
-- twentieth of the rows, and the postings of their terms.

create table rag_collection (
  id integer generated always as identity,
  name text collate "C" not null,
  -- The owner of the documents. Null also for a collection of files, which everyone may search.
  owner_id integer,
  -- The filter that selects documents: `tag`, `kind`, `ids` and `search`, each nullable. Null for a collection of
  -- files.
  selection jsonb,
  -- The metadata that the last request added to all documents of the collection.
  document_metadata jsonb not null default '{}',
  -- Incremented by every swap. While it is 0, no build has been swapped in and the collection is invisible.
  version bigint not null default 0,
  -- The model and the length of the vectors; null without vectors.
  embedding_model text,
  dimensions integer,
  -- True if all vectors of the collection are in a pgvector table (see below). Otherwise vectors are searched in
  -- memory.
  has_neighbours boolean not null default false,
  -- Numbers of live files, of their chunks, and of all terms in these chunks.
  document_count integer not null default 0,
  chunk_count integer not null default 0,
  term_count bigint not null default 0,
  -- The dictionaries of the live files.
  dictionaries text[] not null default '{}',
  -- The request that started the last run.
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- When the collection was deleted. It is then invisible, and a task deletes its rows.
  deleted_at timestamptz,
  constraint rag_collection_pkey primary key (id),
  constraint rag_collection_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint rag_collection_owner_id_check check (owner_id is null or selection is not null),
  constraint rag_collection_name_check check (length(name) between 1 and 100),
  constraint rag_collection_dimensions_check check ((embedding_model is null) = (dimensions is null) and dimensions between 1 and 16000),
  constraint rag_collection_counts_check check (least(document_count, chunk_count, term_count) >= 0)
);
create unique index rag_collection_name_key on rag_collection (name) where deleted_at is null;
-- Find public collections by name, and the collections of an owner.
create index rag_collection_files_idx on rag_collection (name) where selection is null and deleted_at is null;
create index rag_collection_owner_id_idx on rag_collection (owner_id, name);
create index rag_collection_deleted_idx on rag_collection (id) where deleted_at is not null;

create table rag_file (
  id bigint generated always as identity,
  collection_id integer not null,
  -- The job that builds the file; null once the build is swapped in.
  build_id uuid,
  -- Path of the file below RAG_ROOT, or `documents/ID`.
  source text collate "C" not null,
  -- The document if the source is one; null for a file. No foreign key: if a document is deleted, its rows here stay until
  -- the next swap, so they never vanish during a search. A search looks up the document itself and skips deleted ones.
  document_id bigint,
  -- The metadata that requests added to the file. Those of a document itself are looked up, too.
  metadata jsonb not null default '{}',
  -- For a file, the digest of its bytes. For a document, the digest of its title and the storage times of its pages.
  sha256 bytea not null,
  byte_size bigint not null,
  format text not null,
  -- Version of the code that splits texts into chunks and terms.
  analysis integer not null,
  chunk_count integer not null,
  -- The number of terms in all chunks. It is 0 until the build is swapped in.
  term_count integer not null default 0,
  -- The dictionary for the stems of the words, see `search_languages`.
  dictionary text not null,
  created_at timestamptz not null default now(),
  constraint rag_file_pkey primary key (id),
  constraint rag_file_collection_id_fkey foreign key (collection_id) references rag_collection (id) on delete cascade,
  constraint rag_file_metadata_check check (jsonb_typeof(metadata) = 'object'),
  constraint rag_file_sha256_check check (octet_length(sha256) = 32)
);
create unique index rag_file_source_key on rag_file (collection_id, source) where build_id is null;
-- Speeds up deleting the files of a collection.
create index rag_file_collection_id_idx on rag_file (collection_id);
create unique index rag_file_build_key on rag_file (collection_id, source) where build_id is not null;

create table rag_chunk (
  file_id bigint not null,
  -- Number of the chunk within the file, from 0.
  ordinal integer not null,
  content text not null,
  -- Position of the chunk: character offsets (UTF-16) in the file's text, lines from 1, and the page of a PDF.
  start_offset integer not null,
  end_offset integer not null,
  start_line integer not null,
  end_line integer not null,
  page integer,
  -- The headings above the chunk, outermost first, joined by ' > '.
  heading text,
  collection_id integer not null,
  -- Number of the chunk in its collection, from 0. New chunks get the numbers of removed ones.
  number integer not null,
  -- The terms of the chunk, its file name and its headings, see `rag_terms`.
  terms integer[] not null,
  common_terms integer[] not null,
  constraint rag_chunk_pkey primary key (file_id, ordinal),
  constraint rag_chunk_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  -- Searches read the files of chunks from this index alone.
  constraint rag_chunk_number_key unique (collection_id, number) include (file_id),
  constraint rag_chunk_number_check check (number >= 0)
);

-- Store hashes and floats uncompressed, because they do not compress. In long rows, the content moves out of line
-- instead.
alter table rag_chunk alter column terms set storage external;
alter table rag_chunk alter column common_terms set storage external;

-- The inverted index: the live chunks that contain a term, in blocks of `rag_block_size` numbers.
create table rag_posting (
  collection_id integer not null,
  term integer not null,
  block integer not null,
  -- 4 bytes for each chunk: its number in the block (2 bytes, big-endian), the occurrences of the term (at most 255), and its
  -- `rag_length_code`.
  postings bytea not null,
  constraint rag_posting_pkey primary key (collection_id, term, block),
  constraint rag_posting_collection_id_fkey foreign key (collection_id) references rag_collection (id) on delete cascade,
  constraint rag_posting_postings_check check (octet_length(postings) > 0 and octet_length(postings) % 4 = 0)
);
alter table rag_posting alter column postings set storage external;
alter table rag_posting set (autovacuum_vacuum_scale_factor = 0.05);

-- Vectors of a file's chunks in chunk order, one row per model. They are written once, separately from the chunks.
-- While a collection moves to another model, a file may have vectors of both.
create table rag_vector (
  file_id bigint not null,
  model text not null,
  dimensions integer not null,
  -- Floats of 4 bytes each, little-endian. Each chunk's vector is normalized to length 1.
  floats bytea not null,
  constraint rag_vector_pkey primary key (file_id, model),
  constraint rag_vector_file_id_fkey foreign key (file_id) references rag_file (id) on delete cascade,
  constraint rag_vector_floats_check check (dimensions between 1 and 16000 and octet_length(floats) % (4 * dimensions) = 0)
);
alter table rag_vector alter column floats set storage external;
-- Vacuum early. Otherwise, the rows of deleted files would take up much space before it is reused.
alter table rag_file set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_chunk set (autovacuum_vacuum_scale_factor = 0.05);
alter table rag_vector set (autovacuum_vacuum_scale_factor = 0.05);
-- If pgvector is installed, vectors are also stored in one table per length, whose index finds neighbours without a
-- full scan. The first vectors of a length create the table.
do $$ begin
  if exists (select from pg_available_extensions where name = 'vector') then create extension if not exists vector; end if;
exception when insufficient_privilege then null;
end $$;
