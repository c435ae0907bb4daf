-- Documents, their original bytes, and the content of their pages.

-- Identical bytes are stored once. A blob without a digest is an upload in progress, or is being deleted.
create table blob (
  id bigint generated always as identity,
  sha256 bytea,
  byte_size bigint not null default 0,
  -- The store of the bytes, in the format of BLOB_STORE: a deployment that changes its store still finds older blobs.
  store text not null default 'postgres',
  -- The name of the bytes in that store. It is random, so two uploads of the same content never share a file, and
  -- deleting one never deletes the bytes of the other.
  key uuid not null default gen_random_uuid(),
  -- The multipart upload in progress at the object store, which bills its parts until it is completed or aborted.
  upload_id text,
  -- True if the bytes are being deleted; no new document may use them.
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

-- Document bytes are already compressed, or are read without change: compressing them only wastes CPU.
alter table blob_chunk alter column bytes set storage external;

-- A document as clients see it, as JSON. It is built on write, because documents are read far more often. Responses
-- contain it unchanged, so it has no white space between its parts, like all JSON of the service: row_to_json adds
-- none, json_build_object does. Truly immutable: JSON dates are in ISO format whatever the session settings.
create function document_json(id bigint, title text, kind text, media_type text, byte_size bigint, sha256 bytea,
  page_count integer, document_date date, received_at timestamptz, source text, channel text, note text, protected boolean,
  supersedes_id bigint, tags text[], created_at timestamptz, updated_at timestamptz, superseded_by_id bigint, attached_to_id bigint)
returns text language sql immutable parallel safe as $$
  select row_to_json(fields)::text from (
    select id, title, kind, media_type, byte_size, encode(sha256, 'hex') as sha256, page_count, document_date,
      iso(received_at) as received_at, source, channel, note, protected, supersedes_id, tags, iso(created_at) as created_at,
      iso(updated_at) as updated_at, superseded_by_id, attached_to_id) fields
$$;
-- Makes ASCII the only separator of words. Replaces each other mark, symbol and space with `separator` (\1: itself),
-- replaces other hyphens with `-`, and removes soft hyphens. Where LC_CTYPE is C, as in the embedded database, the
-- parser treats all non-ASCII characters as letters: “invoice” and €50 would each be one word.
create function separate_words(content text, separator text) returns text language sql immutable parallel safe
  return case when content ~ '[^\x01-\x7f]' then regexp_replace(translate(content, E'\u2010\u2011\u2212\u00ad', '---'),
    '([\u0080-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u2000-\u200b\u2012-\u202f\u2030-\u205f'
    '\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20'
    '\uff3b-\uff40\uff5b-\uff65\uffe0-\uffee])', separator, 'g') else content end;

-- Includes the date in ISO format, whatever the session settings.
create function document_vector(title text, note text, tags text[], document_date date) returns tsvector
language sql immutable parallel safe as $$
  select setweight(to_tsvector('folded', separate_words(title, ' ')), 'A') || setweight(to_tsvector('folded', separate_words(array_to_string(tags, ' '), ' ')), 'A')
    || setweight(to_tsvector('folded', separate_words(coalesce(note, ''), ' ')), 'B')
    || coalesce(setweight(to_tsvector('folded', json_build_array(document_date) ->> 0), 'B'), '')
$$;

-- The prefix of an owner's words in the word indexes; null: documents without an owner.
create function owner_prefix(owner integer) returns text language sql immutable parallel safe
  return to_hex(coalesce(owner, 0)) || ':';

-- The index entries of a vector: its words, each prefixed with the owner. So a search, even for a prefix, reads only
-- the entries of its own owner. A key holds less than 2 KiB, so longer words are truncated.
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
  -- The live document that supersedes it, maintained by document_set_superseded; null: none does.
  superseded_by_id bigint,
  -- The mail that it was attached to; null: it was no attachment.
  attached_to_id bigint,
  -- True if it is a mail whose attachments are not all stored yet; the next extraction stores them.
  attachments_due boolean not null default false,
  -- The date that lists sort and filter by: the document's own, or else the date of receipt.
  day date not null generated always as (coalesce(document_date, (received_at at time zone 'utc')::date)) stored,
  -- The password of an encrypted document, sealed with the deployment's key; null: none is stored.
  sealed_password text,
  tags text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  deleted_at timestamptz,
  -- End of a deleted document's time in the trash: from then on it cannot be restored.
  expires_at timestamptz,
  -- When the pages of a deleted document were deleted; null: they still exist. The row outlives them.
  pruned_at timestamptz,
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

-- One document per owner for identical bytes; null (no authentication) is an owner like any other.
create unique index document_owner_id_sha256_key on document (owner_id, sha256) nulls not distinct where deleted_at is null;
-- Includes deleted documents: deleting an account looks for all of its rows. Live ones are counted with an index-only
-- scan.
create index document_owner_id_idx on document (owner_id, id desc) include (deleted_at);
-- The default list, counted and paged with an index-only scan.
create index document_listed_idx on document (owner_id, id desc) where deleted_at is null and superseded_by_id is null;
create index document_kind_idx on document (owner_id, kind, id desc) where deleted_at is null and superseded_by_id is null;
create index document_day_idx on document (owner_id, day, id) include (superseded_by_id) where deleted_at is null;
create index document_title_idx on document (owner_id, lower(title), id) where deleted_at is null;
create index document_supersedes_id_idx on document (supersedes_id) where supersedes_id is not null;
create index document_attached_to_id_idx on document (attached_to_id) where attached_to_id is not null;
create unique index document_supersedes_id_key on document (supersedes_id) where deleted_at is null;
-- The trash, plus expired documents until their pages are deleted.
create index document_owner_id_deleted_at_idx on document (owner_id, deleted_at desc, id desc) include (expires_at)
  where expires_at is not null and pruned_at is null;
create index document_expires_at_idx on document (expires_at) where expires_at is not null and pruned_at is null;
create index document_collected_idx on document (deleted_at) where pruned_at is not null;
-- Finds documents of all owners by their bytes.
create index document_sha256_idx on document (sha256);
create index document_search_idx on document using gin (owned_vector(owner_id, search)) where deleted_at is null;

-- One row per tag of a live document, with the columns that lists sort and filter by; maintained by document_tags_sync.
create table document_tag (
  document_id bigint not null,
  label text not null,
  -- 0: no owner.
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

-- Number of live documents of an owner (0: none) per tag. Maintained by functions/sums.
create table document_tag_count (
  id bigint generated always as identity,
  owner_id integer not null,
  label text not null,
  documents bigint not null,
  -- Superseded documents among them, which lists hide by default.
  superseded bigint not null,
  constraint document_tag_count_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index document_tag_count_owner_id_idx on document_tag_count (owner_id, label) include (documents, superseded);

-- An owner's storage, including the trash. Maintained by functions/sums.
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
  -- The document's owner; `page_compute_search` sets it together with `search`.
  owner_id integer,
  page_number integer not null,
  status text not null,
  method text not null,
  model text,
  detail text,
  text text not null default '',
  -- The vector of `text`; `page_compute_search` computes it for writes that omit it.
  search tsvector not null,
  image bytea,
  -- A size without an image means that the page is not rendered yet.
  width integer,
  height integer,
  -- True if reading the page crashed repeatedly or exceeded its budget: only a forced extraction retries it.
  given_up boolean not null default false,
  -- The extraction that wrote the row: an attempt that resumes after a crash recognizes its own pages by it.
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
  -- Each search scans the index's pending list until vacuum merges it, and counts with index-only scans only on
  -- vacuumed pages.
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table document_page alter column image set storage external;
create index document_page_search_idx on document_page using gin (owned_vector(owner_id, search));

-- Every indexed word, for searches by a part of a word. An index over whole texts would be several times their size,
-- and using it would cost more than reading the texts.
create table search_word (
  word text not null,
  -- The last known occurrence, accurate to three days.
  seen_at timestamptz not null default now(),
  constraint search_word_pkey primary key (word)
);
create index search_word_seen_at_idx on search_word (seen_at);
create index search_word_trigram_idx on search_word using gin (word gin_trgm_ops);

-- The pass over all texts that marks their words, so that unused words can be deleted. At most one runs at a time.
create table search_pass (
  started_at timestamptz not null default now(),
  -- The last marked text: a page, or page 0 for the metadata of a document.
  document_id bigint not null default 0,
  page_number integer not null default 0
);
create unique index search_pass_single_key on search_pass ((true));
