-- Blog posts, their tags, and uploaded files with posts to import.

-- Returns a post's public JSON, without its tags and its closing brace. It is computed on write, because posts are read
-- far more often. It has no white space, see document_json. The function is immutable, because JSON dates are in ISO
-- format whatever the session settings.
create function blog_post_fields(id bigint, title text, slug text, excerpt text, content text, status text,
  author_id integer, author_name text, created_at timestamptz, updated_at timestamptz, published_at timestamptz,
  seo_title text, seo_description text, hero_image_url text)
returns text language sql immutable parallel safe
  return (select left(row_to_json(post)::text, -1) from (
    select id, title, slug, excerpt, content, status, author_id, author_name, iso(created_at) as created_at,
      iso(updated_at) as updated_at, iso(published_at) as published_at, seo_title, seo_description, hero_image_url) post);

create table blog_post (
  id bigint generated always as identity,
  title text not null,
  -- The collation compares bytes, so a range scan finds slugs by prefix.
  slug text collate "C" not null,
  excerpt text,
  content text not null default '',
  status text not null default 'draft',
  author_id integer,
  -- Name of the author, which stays when the account is deleted.
  author_name text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  published_at timestamptz,
  seo_title text,
  seo_description text,
  hero_image_url text,
  -- When the blog announced that the post is public, once and for all; null until then. An import announces no post that is
  -- public already, and sets the time without an event.
  announced_at timestamptz,
  fields text not null generated always as (blog_post_fields(id, title, slug, excerpt, content, status, author_id,
    author_name, created_at, updated_at, published_at, seo_title, seo_description, hero_image_url)) stored,
  -- The tags as a JSON list, maintained by triggers and blog_tag_apply. With a join instead, a page of 20 posts takes
  -- 0.35 ms and 130 buffers rather than 0.08 ms and 9. The list is not part of `fields`, so a tag change does not
  -- rebuild the JSON of the post.
  tags text not null default '[]',
  constraint blog_post_pkey primary key (id),
  constraint blog_post_slug_key unique (slug),
  constraint blog_post_author_id_fkey foreign key (author_id) references account (id) on delete set null,
  constraint blog_post_title_check check (length(title) between 1 and 200),
  constraint blog_post_slug_check check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 220),
  constraint blog_post_excerpt_check check (length(excerpt) <= 500),
  constraint blog_post_content_check check (length(content) <= 1000000),
  constraint blog_post_status_check check (status in ('draft', 'published', 'archived')),
  constraint blog_post_author_name_check check (length(author_name) <= 320),
  constraint blog_post_published_at_check check (status <> 'published' or published_at is not null),
  constraint blog_post_seo_title_check check (length(seo_title) <= 200),
  constraint blog_post_seo_description_check check (length(seo_description) <= 320),
  constraint blog_post_hero_image_url_check check (length(hero_image_url) <= 1024)
);
create index blog_post_published_idx on blog_post (published_at desc, id desc) where status = 'published';
create index blog_post_unannounced_idx on blog_post (published_at) where status = 'published' and announced_at is null;
create index blog_post_created_at_idx on blog_post (created_at desc, id desc);
create index blog_post_status_idx on blog_post (status, created_at desc, id desc);
create index blog_post_author_id_idx on blog_post (author_id) where author_id is not null;

-- The search vectors of posts, maintained by triggers. Part 0 has the title and the excerpt. The others have the parts of the
-- content, see `page_part`. In indexes and `search_word`, the owner -1 stands for the blog.
create table blog_post_part (
  post_id bigint not null,
  part integer not null,
  search tsvector not null,
  constraint blog_post_part_pkey primary key (post_id, part),
  constraint blog_post_part_post_id_fkey foreign key (post_id) references blog_post (id) on delete cascade
  -- The table is vacuumed early, see document_page.
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
create index blog_post_part_search_idx on blog_post_part using gin (owned_vector(-1, search));

-- Former slugs of posts that have been public. No post has one of them. Maintained by triggers.
create table blog_redirect (
  slug text collate "C" not null,
  post_id bigint not null,
  constraint blog_redirect_pkey primary key (slug),
  constraint blog_redirect_post_id_fkey foreign key (post_id) references blog_post (id) on delete cascade
);
create index blog_redirect_post_id_idx on blog_redirect (post_id);

create table blog_tag (
  id bigint generated always as identity,
  -- Null once the tag is deleted.
  name text,
  slug text collate "C",
  created_at timestamptz not null default now(),
  -- When the tag was deleted. It is then invisible. A task removes it from its posts, and then deletes this row.
  deleted_at timestamptz,
  -- Progress of a change or deletion of the tag, which processes its posts in id order. The value is the last processed
  -- post id; null if nothing is left to do.
  applied_to bigint,
  constraint blog_tag_pkey primary key (id),
  constraint blog_tag_name_key unique (name),
  constraint blog_tag_slug_key unique (slug),
  constraint blog_tag_deleted_check check ((deleted_at is null) = (name is not null) and (name is null) = (slug is null)),
  constraint blog_tag_name_check check (length(name) between 1 and 80),
  constraint blog_tag_slug_check check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 100)
);
create index blog_tag_listed_idx on blog_tag (lower(name), name);
create index blog_tag_applied_to_idx on blog_tag (id) where applied_to is not null;

create table blog_post_tag (
  post_id bigint not null,
  tag_id bigint not null,
  -- Copies of the post's columns, maintained by triggers. With them, an index finds the posts of a tag in list order.
  status text not null,
  created_at timestamptz not null,
  published_at timestamptz,
  constraint blog_post_tag_pkey primary key (post_id, tag_id),
  constraint blog_post_tag_post_id_fkey foreign key (post_id) references blog_post (id) on delete cascade,
  constraint blog_post_tag_tag_id_fkey foreign key (tag_id) references blog_tag (id) on delete cascade
);
create index blog_post_tag_tag_id_idx on blog_post_tag (tag_id, post_id);
create index blog_post_tag_published_idx on blog_post_tag (tag_id, published_at desc, post_id desc) where status = 'published';
create index blog_post_tag_created_at_idx on blog_post_tag (tag_id, created_at desc, post_id desc);
create index blog_post_tag_status_idx on blog_post_tag (tag_id, status, created_at desc, post_id desc);

-- Former versions of posts. A change keeps the version that it replaces.
create table blog_revision (
  id bigint generated always as identity,
  post_id bigint not null,
  title text not null,
  slug text not null,
  excerpt text,
  content text not null,
  seo_title text,
  seo_description text,
  hero_image_url text,
  -- The tags as a JSON list, as in `blog_post`.
  tags text not null,
  -- When this version was written.
  updated_at timestamptz not null,
  replaced_at timestamptz not null default now(),
  -- The kind of change that replaced it, and the account that made the change. The name stays when the account is deleted.
  replaced_by text not null,
  editor_id integer,
  editor_name text,
  constraint blog_revision_pkey primary key (id),
  constraint blog_revision_post_id_fkey foreign key (post_id) references blog_post (id) on delete cascade,
  constraint blog_revision_editor_id_fkey foreign key (editor_id) references account (id) on delete set null,
  constraint blog_revision_replaced_by_check check (replaced_by in ('update', 'restore', 'import'))
);
create index blog_revision_post_id_idx on blog_revision (post_id, id desc);
create index blog_revision_editor_id_idx on blog_revision (editor_id, id) where editor_id is not null;

-- Links that show a post to people without an account. The token of a link is derived from the id and the deployment's key.
create table blog_preview (
  id bigint generated always as identity,
  post_id bigint not null,
  expires_at timestamptz not null,
  constraint blog_preview_pkey primary key (id),
  constraint blog_preview_post_id_fkey foreign key (post_id) references blog_post (id) on delete cascade
);
create index blog_preview_post_id_idx on blog_preview (post_id, id);
create index blog_preview_expires_at_idx on blog_preview (expires_at);

-- Number of posts per status, so that a list need not count 10,000 posts. Maintained by sums/functions.
create table blog_post_count (
  id bigint generated always as identity,
  status text not null,
  posts bigint not null,
  constraint blog_post_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index blog_post_count_status_idx on blog_post_count (status);

-- An uploaded file with posts, kept until its import ends.
create table blog_upload (
  id bigint generated always as identity,
  file_name text not null,
  format text not null,
  -- The job that imports the file; null while the upload is in progress.
  job_id uuid,
  -- Result of the import, written in the same transaction as the posts. If the attempt dies afterwards, the next
  -- attempt returns this result.
  result jsonb,
  created_at timestamptz not null default now(),
  constraint blog_upload_pkey primary key (id),
  constraint blog_upload_format_check check (format in ('markdown', 'zip', 'json', 'xml'))
);
create index blog_upload_created_at_idx on blog_upload (created_at);

create table blog_upload_chunk (
  upload_id bigint not null,
  ordinal integer not null,
  bytes bytea not null,
  constraint blog_upload_chunk_pkey primary key (upload_id, ordinal),
  constraint blog_upload_chunk_upload_id_fkey foreign key (upload_id) references blog_upload (id) on delete cascade
);
alter table blog_upload_chunk alter column bytes set storage external;
