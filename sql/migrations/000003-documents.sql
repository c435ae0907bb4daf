-- Documents, the bytes they were made from, and what was read from their pages.

-- Bytes are stored once per content. A blob without a digest is an upload under way.
create table blob (
  id bigint generated always as identity,
  sha256 bytea,
  byte_size bigint not null default 0,
  created_at timestamptz not null default now(),
  constraint blob_pkey primary key (id),
  constraint blob_sha256_key unique (sha256),
  constraint blob_sha256_check check (length(sha256) = 32)
);
create index blob_unfinished_idx on blob (created_at) where sha256 is null;

create table blob_chunk (
  blob_id bigint not null,
  ordinal integer not null,
  bytes bytea not null,
  constraint blob_chunk_pkey primary key (blob_id, ordinal),
  constraint blob_chunk_blob_id_fkey foreign key (blob_id) references blob (id) on delete cascade
);
-- The bytes of a document are compressed already, or are read as they are: do not spend CPU on them.
alter table blob_chunk alter column bytes set storage external;

-- What clients see of a document, as JSON without its closing brace: built when the row is written, because it is read
-- far more often. Immutable in truth: JSON writes dates in ISO form whatever the session's settings.
create function document_fields(id integer, title text, kind text, media_type text, byte_size bigint, sha256 bytea,
  page_count integer, document_date date, received_at timestamptz, source text, channel text, note text,
  protected boolean, supersedes_id integer, tags text[], created_at timestamptz, updated_at timestamptz)
returns text language sql immutable parallel safe as $$
  select left(json_build_object('id', id, 'title', title, 'kind', kind, 'media_type', media_type, 'byte_size', byte_size,
    'sha256', encode(sha256, 'hex'), 'page_count', page_count, 'document_date', document_date,
    'received_at', iso(received_at), 'source', source, 'channel', channel, 'note', note, 'protected', protected,
    'supersedes_id', supersedes_id, 'tags', tags, 'created_at', iso(created_at), 'updated_at', iso(updated_at))::text, -1)
$$;

create table document (
  id integer generated always as identity,
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
  supersedes_id integer,
  tags text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  deleted_at timestamptz,
  fields text not null generated always as (document_fields(id, title, kind, media_type, byte_size, sha256, page_count,
    document_date, received_at, source, channel, note, protected, supersedes_id, tags, created_at, updated_at)) stored,
  constraint document_pkey primary key (id),
  constraint document_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint document_supersedes_id_fkey foreign key (supersedes_id) references document (id),
  constraint document_title_check check (length(title) between 1 and 300),
  constraint document_kind_check check (length(kind) between 1 and 32),
  constraint document_sha256_check check (length(sha256) = 32)
);
-- Identical bytes are one document of their owner; null (no authentication) is an owner like any other.
create unique index document_owner_id_sha256_key on document (owner_id, sha256) nulls not distinct where deleted_at is null;
create index document_owner_id_idx on document (owner_id, id desc) where deleted_at is null;
create unique index document_supersedes_id_key on document (supersedes_id) where deleted_at is null;

create table document_page (
  document_id integer not null,
  page_number integer not null,
  status text not null,
  method text not null,
  model text,
  detail text,
  text text not null default '',
  image bytea,
  width integer,
  height integer,
  -- The extraction that wrote the row: an attempt that goes on after a crash knows its own pages by it.
  job_id uuid not null,
  updated_at timestamptz not null default now(),
  constraint document_page_pkey primary key (document_id, page_number),
  constraint document_page_document_id_fkey foreign key (document_id) references document (id) on delete cascade,
  constraint document_page_page_number_check check (page_number > 0),
  constraint document_page_status_check check (status in ('read', 'unread')),
  constraint document_page_method_check check (method in ('text_layer', 'vision', 'none')),
  constraint document_page_reason_check check (status = 'read' or detail is not null),
  constraint document_page_model_check check (model is null or method = 'vision'),
  constraint document_page_image_check check ((image is null) = (width is null) and (image is null) = (height is null))
);
alter table document_page alter column image set storage external;

-- Pages that a repeated attempt has in hand; 0 stands for opening the document. What cuts an attempt short again
-- and again at the same place is found here.
create table document_page_try (
  document_id integer not null,
  page_number integer not null,
  job_id uuid not null,
  tries integer not null default 1,
  constraint document_page_try_pkey primary key (document_id, page_number),
  constraint document_page_try_document_id_fkey foreign key (document_id) references document (id) on delete cascade
);
