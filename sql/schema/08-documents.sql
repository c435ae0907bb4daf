-- Documents, the bytes they were made from, and what was read from their pages.

-- Identical bytes are stored once. A blob without a digest is an upload in progress, or is being deleted.
create table blob (
  id bigint generated always as identity,
  sha256 bytea,
  byte_size bigint not null default 0,
  -- Where its bytes are, in the format of BLOB_STORE, so that a deployment that changes its store finds older blobs.
  store text not null default 'postgres',
  -- The name of the bytes in that store: random, so that two uploads of the same content never share a file, and
  -- deleting one never deletes the bytes of the other.
  key uuid not null default gen_random_uuid(),
  -- The object store's multipart upload in progress: its parts are billed until it is completed or aborted.
  upload_id text,
  -- Its bytes are being deleted, and no document may be made of them.
  deleted boolean not null default false,
  created_at timestamptz not null default now(),
  constraint blob_pkey primary key (id),
  constraint blob_sha256_key unique (sha256),
  constraint blob_sha256_check check (length(sha256) = 32),
  constraint blob_store_check check (store = 'postgres' or store like 'file:_%' or store like 's3://_%'),
  constraint blob_deleted_check check (not deleted or sha256 is null)
);
create index blob_unfinished_idx on blob (created_at) where sha256 is null;

create table blob_chunk (
  blob_id bigint not null,
  ordinal integer not null,
  bytes bytea not null,
  constraint blob_chunk_pkey primary key (blob_id, ordinal),
  constraint blob_chunk_blob_id_fkey foreign key (blob_id) references blob (id) on delete cascade
);

-- Document bytes are already compressed, or are read as they are: do not spend CPU on compressing them.
alter table blob_chunk alter column bytes set storage external;

-- A document as clients see it, as JSON: built when the row is written, because it is read far more often. Sent unchanged,
-- so without white space between its parts, like all JSON of the service: row_to_json writes none, json_build_object does.
-- Truly immutable: JSON has dates in ISO form whatever the session's settings.
create function document_json(id bigint, title text, kind text, media_type text, byte_size bigint, sha256 bytea,
  page_count integer, document_date date, received_at timestamptz, source text, channel text, note text, protected boolean,
  supersedes_id bigint, tags text[], created_at timestamptz, updated_at timestamptz, superseded_by_id bigint, attached_to_id bigint)
returns text language sql immutable parallel safe as $$
  select row_to_json(fields)::text from (
    select id, title, kind, media_type, byte_size, encode(sha256, 'hex') as sha256, page_count, document_date,
      iso(received_at) as received_at, source, channel, note, protected, supersedes_id, tags, iso(created_at) as created_at,
      iso(updated_at) as updated_at, superseded_by_id, attached_to_id) fields
$$;
-- A text whose words are parted by ASCII alone: `parting` takes the place of each other mark, symbol and space (\1: itself), `-` that
-- of other hyphens, and those that only say where a word may be divided are left out. Where LC_CTYPE is C, as in the embedded
-- database, the parser takes all beyond ASCII for letters: “invoice” and €50 would each be a word.
create function words_parted(said text, parting text) returns text language sql immutable parallel safe
  return case when said ~ '[^\x01-\x7f]' then regexp_replace(translate(said, E'\u2010\u2011\u2212\u00ad', '---'),
    '([\u0080-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u2000-\u200b\u2012-\u202f\u2030-\u205f'
    '\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20'
    '\uff3b-\uff40\uff5b-\uff65\uffe0-\uffee])', parting, 'g') else said end;

-- The date as people look for it, the same whatever the session's settings.
create function document_vector(title text, note text, tags text[], document_date date) returns tsvector
language sql immutable parallel safe as $$
  select setweight(to_tsvector('folded', words_parted(title, ' ')), 'A') || setweight(to_tsvector('folded', words_parted(array_to_string(tags, ' '), ' ')), 'A')
    || setweight(to_tsvector('folded', words_parted(coalesce(note, ''), ' ')), 'B')
    || coalesce(setweight(to_tsvector('folded', json_build_array(document_date) ->> 0), 'B'), '')
$$;

-- What a word of an owner (null: nobody) begins with in the indexes of words.
create function owner_prefix(owner integer) returns text language sql immutable parallel safe
  return to_hex(coalesce(owner, 0)) || ':';

-- What an index looks for in a vector: its words, each behind its owner, so that what a search reads does not
-- follow what others have, not even for the beginning of a word. A key holds less than 2 KiB; longer words are cut.
create function owned_vector(owner integer, vector tsvector) returns tsvector language sql immutable parallel safe
  return array_to_tsvector(array(
    select owner_prefix(owner) || left(word, 500) from unnest(tsvector_to_array(vector)) word));

create table document (
  id bigint generated always as identity,
  owner_id integer,
  title text not null,
  kind text not null default 'other',
  media_type text not null,
  byte_size bigint not null,
  sha256 bytea not null,
  page_count integer,
  document_date date,
  received_at timestamptz not null default now(),
  source text not null default 'upload',
  channel text,
  note text,
  protected boolean not null default false,
  supersedes_id bigint,
  -- The live document that supersedes it; kept by document_superseded.
  superseded_by_id bigint,
  -- The mail that it came with.
  attached_to_id bigint,
  -- It is a mail that has been read, or is about to be, and what came with it is not all stored yet: for the next extraction.
  attachments_due boolean not null default false,
  -- What lists are ordered and narrowed by: the day that it says, or the day on which it came.
  day date not null generated always as (coalesce(document_date, (received_at at time zone 'utc')::date)) stored,
  -- What opens it, if it is encrypted: as sealed by the deployment's key.
  sealed_password text,
  tags text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  deleted_at timestamptz,
  -- A deleted document is in the trash until then: nobody can restore it afterwards.
  expires_at timestamptz,
  -- When the pages of a deleted document were deleted, once; its row is kept for longer.
  collected_at timestamptz,
  json text not null generated always as (document_json(id, title, kind, media_type, byte_size, sha256, page_count,
    document_date, received_at, source, channel, note, protected, supersedes_id, tags, created_at, updated_at, superseded_by_id,
    attached_to_id)) stored,
  search tsvector not null generated always as (document_vector(title, note, tags, document_date)) stored,
  constraint document_pkey primary key (id),
  constraint document_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint document_supersedes_id_fkey foreign key (supersedes_id) references document (id) on delete set null,
  constraint document_attached_to_id_fkey foreign key (attached_to_id) references document (id) on delete set null,
  constraint document_title_check check (length(title) between 1 and 300),
  constraint document_kind_check check (length(kind) between 1 and 32),
  constraint document_sha256_check check (length(sha256) = 32),
  constraint document_tags_check check (cardinality(tags) <= 100),
  constraint document_supersedes_id_check check (supersedes_id <> id),
  constraint document_expires_at_check check ((deleted_at is null) = (expires_at is null))
);

-- An owner has one document for identical bytes; null (no authentication) is an owner like any other.
create unique index document_owner_id_sha256_key on document (owner_id, sha256) nulls not distinct where deleted_at is null;
-- Of deleted ones, too: deleting an account looks for all of its rows. Those that are not are counted without looking at a row.
create index document_owner_id_idx on document (owner_id, id desc) include (deleted_at);
-- What lists show unless asked for more: counted and skipped without looking at a row.
create index document_listed_idx on document (owner_id, id desc) where deleted_at is null and superseded_by_id is null;
create index document_kind_idx on document (owner_id, kind, id desc) where deleted_at is null and superseded_by_id is null;
create index document_day_idx on document (owner_id, day, id) include (superseded_by_id) where deleted_at is null;
create index document_title_idx on document (owner_id, lower(title), id) where deleted_at is null;
create index document_supersedes_id_idx on document (supersedes_id) where supersedes_id is not null;
create index document_attached_to_id_idx on document (attached_to_id) where attached_to_id is not null;
create unique index document_supersedes_id_key on document (supersedes_id) where deleted_at is null;
-- The trash, and for as long as its pages are there what has left it.
create index document_owner_id_deleted_at_idx on document (owner_id, deleted_at desc, id desc) include (expires_at)
  where expires_at is not null and collected_at is null;
create index document_expires_at_idx on document (expires_at) where expires_at is not null and collected_at is null;
create index document_collected_idx on document (deleted_at) where collected_at is not null;
-- For finding the documents with given bytes, of any owner.
create index document_sha256_idx on document (sha256);
create index document_search_idx on document using gin (owned_vector(owner_id, search)) where deleted_at is null;

-- A row for each tag of a live document, with what lists of them are ordered and narrowed by; kept by document_tagged.
create table document_tag (
  document_id bigint not null,
  label text not null,
  -- 0: nobody.
  owner_id integer not null,
  kind text not null,
  day date not null,
  -- In lower case.
  title text not null,
  superseded boolean not null,
  constraint document_tag_pkey primary key (document_id, label),
  constraint document_tag_document_id_fkey foreign key (document_id) references document (id) on delete cascade
);
create index document_tag_owner_id_idx on document_tag (owner_id, label, document_id) include (kind, superseded);
create index document_tag_day_idx on document_tag (owner_id, label, day, document_id) include (kind, superseded);
create index document_tag_title_idx on document_tag (owner_id, label, title, document_id) include (kind, superseded);

-- How many live documents of an owner (0: nobody) have a tag. Kept as functions/sums says.
create table document_tag_count (
  id bigint generated always as identity,
  owner_id integer not null,
  label text not null,
  documents bigint not null,
  -- Those of them that lists leave out unless asked.
  superseded bigint not null,
  constraint document_tag_count_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index document_tag_count_owner_id_idx on document_tag_count (owner_id, label) include (documents, superseded);

-- What an owner has stored, the trash included. Kept as functions/sums says.
create table document_sum (
  id bigint generated always as identity,
  owner_id integer not null,
  documents bigint not null,
  bytes bigint not null,
  pages bigint not null,
  constraint document_sum_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index document_sum_owner_id_idx on document_sum (owner_id);

create table document_page (
  document_id bigint not null,
  -- The document's; `page_indexed` fills it in together with `search`.
  owner_id integer,
  page_number integer not null,
  status text not null,
  method text not null,
  model text,
  detail text,
  text text not null default '',
  -- The vector of `text`; `page_indexed` fills it in for writes that leave it out.
  search tsvector not null,
  image bytea,
  -- A size without an image means that the page has not been rendered yet.
  width integer,
  height integer,
  -- Reading it crashed repeatedly, or exceeded its budget: only a forced extraction tries it again.
  given_up boolean not null default false,
  -- The extraction that wrote the row: an attempt that continues after a crash recognizes its own pages by it.
  job_id uuid not null,
  updated_at timestamptz not null default now(),
  constraint document_page_pkey primary key (document_id, page_number),
  constraint document_page_document_id_fkey foreign key (document_id) references document (id) on delete cascade,
  constraint document_page_page_number_check check (page_number > 0),
  constraint document_page_status_check check (status in ('read', 'unread')),
  constraint document_page_method_check check (method in ('text_layer', 'vision', 'none')),
  constraint document_page_reason_check check (status = 'read' or detail is not null),
  constraint document_page_model_check check (model is null or method = 'vision'),
  constraint document_page_size_check check ((width is null) = (height is null)),
  constraint document_page_image_check check (image is null or width is not null),
  constraint document_page_given_up_check check (status = 'unread' or not given_up)
  -- Each search reads through the words that vacuum has not moved into the index yet, and counts without looking at rows
  -- only where it has been.
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table document_page alter column image set storage external;
create index document_page_search_idx on document_page using gin (owned_vector(owner_id, search));

-- Every word that occurs, for finding words by a part of them: an index over whole texts would be several times their
-- size, and using it would cost more than reading them.
create table search_word (
  word text not null,
  -- When it was last known to occur, give or take three days.
  seen_at timestamptz not null default now(),
  constraint search_word_pkey primary key (word)
);
create index search_word_seen_at_idx on search_word (seen_at);
create index search_word_trigram_idx on search_word using gin (word gin_trgm_ops);

-- The pass over all texts that marks their words, so that those of none can be told: at most one is under way.
create table search_pass (
  begun_at timestamptz not null default now(),
  -- The last text that it has marked: a page, or page 0, what is said about a document.
  document_id bigint not null default 0,
  page_number integer not null default 0
);
create unique index search_pass_single_key on search_pass ((true));
