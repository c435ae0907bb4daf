-- The JSON that rows hold for their readers has no white space between its parts, as what the service itself writes: it goes
-- out as it is. row_to_json writes it so, json_build_object does not.
create or replace function document_fields(id integer, title text, kind text, media_type text, byte_size bigint, sha256 bytea,
  page_count integer, document_date date, received_at timestamptz, source text, channel text, note text, protected boolean,
  supersedes_id integer, tags text[], created_at timestamptz, updated_at timestamptz)
returns text language sql immutable parallel safe as $$
  select left(row_to_json(fields)::text, -1) from (
    select id, title, kind, media_type, byte_size, encode(sha256, 'hex') as sha256, page_count, document_date,
      iso(received_at) as received_at, source, channel, note, protected, supersedes_id, tags, iso(created_at) as created_at,
      iso(updated_at) as updated_at) fields
$$;

create or replace function blog_post_json(id integer, title text, slug text, excerpt text, content text, status text,
  author_id integer, author_name text, created_at timestamptz, updated_at timestamptz, published_at timestamptz,
  seo_title text, seo_description text, hero_image_url text, tags text)
returns text language sql immutable parallel safe as $$
  select row_to_json(post)::text from (
    select id, title, slug, excerpt, content, status, author_id, author_name, iso(created_at) as created_at,
      iso(updated_at) as updated_at, iso(published_at) as published_at, seo_title, seo_description, hero_image_url,
      array(select t from json_to_recordset(tags::json) as t(id integer, name text, slug text, created_at text)) as tags) post
$$;

update document set title = title;
update blog_post set title = title;
