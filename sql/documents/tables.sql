-- Documents, their original bytes, and the content of their pages.

-- Stored bytes. Identical bytes are stored once. A blob without a digest is still being uploaded, or is being deleted.
create table blob (
  id bigint generated always as identity,
  sha256 bytea,
  byte_size bigint not null default 0,
  -- The store that holds the bytes, in the format of BLOB_STORE. A deployment that changes its store can still find
  -- older blobs.
  store text not null default 'postgres',
  -- Name of the bytes in the store. It is random, so two uploads of the same content never share a file, and deleting
  -- one never deletes the other's bytes.
  key uuid not null default gen_random_uuid(),
  -- The unfinished multipart upload at the object store, which charges for parts until the upload is completed or
  -- aborted.
  upload_id text,
  -- True while the bytes are being deleted. No new document may refer to them.
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

-- Store the bytes uncompressed: documents are already compressed or are read unchanged, so compression only wastes CPU.
alter table blob_chunk alter column bytes set storage external;

-- Returns a document's public JSON. It is computed on write, because documents are read far more often. Responses
-- include it unchanged, so it must have no white space between its parts, like all JSON of the service. row_to_json
-- adds none, unlike json_build_object. The function is immutable, because JSON dates are in ISO format whatever the
-- session settings.
create function document_json(id bigint, title text, kind text, media_type text, byte_size bigint, sha256 bytea,
  page_count integer, document_date date, received_at timestamptz, source text, channel text, note text, protected boolean,
  supersedes_id bigint, tags text[], created_at timestamptz, updated_at timestamptz, superseded_by_id bigint, attached_to_id bigint)
returns text language sql immutable parallel safe
  return (select row_to_json(fields)::text from (
    select id, title, kind, media_type, byte_size, encode(sha256, 'hex') as sha256, page_count, document_date,
      iso(received_at) as received_at, source, channel, note, protected, supersedes_id, tags, iso(created_at) as created_at,
      iso(updated_at) as updated_at, superseded_by_id, attached_to_id) fields);

-- Returns the search vector of a document's metadata. The date is in ISO format, whatever the session settings.
create function document_vector(title text, note text, tags text[], document_date date) returns tsvector
language sql immutable parallel safe
  return setweight(search_vector(title), 'A') || setweight(search_vector(array_to_string(tags, ' ')), 'A')
    || setweight(search_vector(coalesce(note, '')), 'B')
    || coalesce(setweight(search_vector(json_build_array(document_date) ->> 0), 'B'), '');

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
  -- The live document that supersedes this one, maintained by document_set_superseded; null if there is none.
  superseded_by_id bigint,
  -- The mail or PDF that the document was attached to; null if it was not an attachment.
  attached_to_id bigint,
  -- True for a document with attachments that are not stored yet. The next extraction stores them.
  attachments_due boolean not null default false,
  -- The date for sorting and filtering lists: the document's own date, or else the date of receipt.
  day date not null generated always as (coalesce(document_date, (received_at at time zone 'utc')::date)) stored,
  -- The password of an encrypted document, sealed (see tasks/platform/keys.ts); null if none is stored.
  sealed_password text,
  -- The encoding of a text, as in a charset parameter; null for other files, and while it is unknown.
  encoding text,
  -- The encoding that the owner named; null if the bytes must tell it. Later extractions use it, too.
  given_encoding text,
  tags text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  deleted_at timestamptz,
  -- When a deleted document leaves the trash. It cannot be restored afterwards.
  expires_at timestamptz,
  -- When the pages of a deleted document were deleted; null while they exist. The row outlives its pages.
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
  constraint document_sealed_password_check check (sealed_password ~ '^[\w-]{8}\.[\w-]+$'),
  constraint document_tags_check check (cardinality(tags) <= 100),
  constraint document_supersedes_id_check check (supersedes_id <> id),
  constraint document_expires_at_check check ((deleted_at is null) = (expires_at is null))
);

-- An owner has at most one document with the same bytes. Null (no authentication) is an owner like any other.
create unique index document_owner_id_sha256_key on document (owner_id, sha256) nulls not distinct where deleted_at is null;
-- The index includes deleted documents, because deleting an account looks for all of its rows. Live documents are
-- counted with an index-only scan.
create index document_owner_id_idx on document (owner_id, id desc) include (deleted_at);
-- Serves the default list, which is counted and paged with index-only scans.
create index document_listed_idx on document (owner_id, id desc) where deleted_at is null and superseded_by_id is null;
create index document_kind_idx on document (owner_id, kind, id desc) where deleted_at is null and superseded_by_id is null;
create index document_day_idx on document (owner_id, day, id) include (superseded_by_id) where deleted_at is null;
create index document_title_idx on document (owner_id, lower(title), id) where deleted_at is null;
create index document_byte_size_idx on document (owner_id, byte_size, id) where deleted_at is null;
create index document_page_count_idx on document (owner_id, coalesce(page_count, 0), id) where deleted_at is null;
create index document_supersedes_id_idx on document (supersedes_id) where supersedes_id is not null;
create index document_sealed_idx on document (left(sealed_password, 8), id) where sealed_password is not null;
create index document_attached_to_id_idx on document (attached_to_id) where attached_to_id is not null;
create unique index document_supersedes_id_key on document (supersedes_id) where deleted_at is null;
-- Serves the trash. Also contains expired documents until their pages are deleted.
create index document_owner_id_deleted_at_idx on document (owner_id, deleted_at desc, id desc) include (expires_at)
  where expires_at is not null and pruned_at is null;
create index document_expires_at_idx on document (expires_at) where expires_at is not null and pruned_at is null;
create index document_collected_idx on document (deleted_at) where pruned_at is not null;
-- Finds all documents with the same bytes, whatever their owner.
create index document_sha256_idx on document (sha256);
create index document_search_idx on document using gin (owned_vector(owner_id, search)) where deleted_at is null;

-- A row per tag of each live document, with the columns for sorting and filtering lists. Maintained by
-- document_tags_sync.
create table document_tag (
  document_id bigint not null,
  label text not null,
  -- 0 if the document has no owner.
  owner_id integer not null,
  kind text not null,
  day date not null,
  -- The title in lower case.
  title text not null,
  byte_size bigint not null,
  -- 0 if the pages have not been counted yet.
  page_count integer not null,
  superseded boolean not null,
  constraint document_tag_pkey primary key (document_id, label),
  constraint document_tag_document_id_fkey foreign key (document_id) references document (id) on delete cascade
);
create index document_tag_owner_id_idx on document_tag (owner_id, label, document_id) include (kind, superseded);
create index document_tag_day_idx on document_tag (owner_id, label, day, document_id) include (kind, superseded);
create index document_tag_title_idx on document_tag (owner_id, label, title, document_id) include (kind, superseded);
create index document_tag_byte_size_idx on document_tag (owner_id, label, byte_size, document_id) include (kind, superseded);
create index document_tag_page_count_idx on document_tag (owner_id, label, page_count, document_id) include (kind, superseded);

-- Number of an owner's live documents per tag; owner 0 means none. Maintained by sums/functions.
create table document_tag_count (
  id bigint generated always as identity,
  owner_id integer not null,
  label text not null,
  documents bigint not null,
  -- Number of superseded documents among them, which lists hide by default.
  superseded bigint not null,
  constraint document_tag_count_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index document_tag_count_owner_id_idx on document_tag_count (owner_id, label) include (documents, superseded);

-- Storage that an owner uses, including the trash. Maintained by sums/functions.
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
  -- The document's owner, which `page_compute_search` sets together with `search`.
  owner_id integer,
  page_number integer not null,
  status text not null,
  method text not null,
  -- The model that read the page image, or the pictures next to a text layer.
  model text,
  detail text,
  text text not null default '',
  -- The page as Markdown, with its headings, lists and tables; null if it has none, and `text` stands for it.
  markdown text,
  -- The search vector of the first 16,000 characters of `text`, which `page_compute_search` computes if a write omits it.
  search tsvector not null,
  -- The words that OCR found, with their places on the image; null if it did not read the page.
  placed_words json,
  image bytea,
  -- Size of the page's image. A size without an image means that the page is not rendered yet.
  width integer,
  height integer,
  -- True if reading the page crashed repeatedly or exceeded its budget. Only a forced extraction retries such a page.
  given_up boolean not null default false,
  -- The extraction that wrote the row. An attempt that resumes after a crash recognizes its own pages by it.
  job_id uuid not null,
  updated_at timestamptz not null default now(),
  constraint document_page_pkey primary key (document_id, page_number),
  constraint document_page_document_id_fkey foreign key (document_id) references document (id) on delete cascade,
  constraint document_page_page_number_check check (page_number > 0),
  constraint document_page_status_check check (status in ('read', 'unread')),
  constraint document_page_method_check check (method in ('text_layer', 'vision', 'none')),
  constraint document_page_reason_check check (status = 'read' or detail is not null),
  constraint document_page_model_check check (model is null or method <> 'none'),
  constraint document_page_size_check check ((width is null) = (height is null)),
  constraint document_page_image_check check (image is null or width is not null),
  constraint document_page_given_up_check check (status = 'unread' or not given_up)
  -- The table is vacuumed early: each search scans the pending list of the index until a vacuum merges it. Index-only
  -- scans for counts also need vacuumed pages.
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table document_page alter column image set storage external;
create index document_page_search_idx on document_page using gin (owned_vector(owner_id, search));

-- Returns a part of a page's text: the first 16,000 characters (0), or one of those that follow. The search vector of a part
-- has room for all its words, see `search_vector`. Parts overlap by 200 characters, so that phrases are found on their borders.
create function page_part(content text, part integer) returns text language sql immutable parallel safe
  return case when part = 0 then left(content, 16000) else substr(content, part * 16000 - 199, 16200) end;

-- Returns the number of the last part of a page's text, see `page_part`.
create function page_last_part(content text) returns integer language sql immutable parallel safe
  return greatest(0, length(content) - 1) / 16000;

-- The search vectors of what follows the first 16,000 characters of a page: one for each further 16,000.
create table document_page_part (
  document_id bigint not null,
  page_number integer not null,
  part integer not null,
  owner_id integer,
  search tsvector not null,
  constraint document_page_part_pkey primary key (document_id, page_number, part),
  constraint document_page_part_document_id_fkey foreign key (document_id, page_number)
    references document_page (document_id, page_number) on delete cascade,
  constraint document_page_part_part_check check (part > 0)
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
create index document_page_part_search_idx on document_page_part using gin (owned_vector(owner_id, search));
